// Codex asks before it acts; you answer: node examples/approvals.mjs

import { createInterface } from 'node:readline/promises';
import { generateText } from 'ai';
import { createCodex } from '@bindery/ai-sdk';

const codex = createCodex({ thread: { approvalPolicy: 'untrusted', sandbox: 'read-only' } });
const terminal = createInterface({ input: process.stdin, output: process.stdout });
const messages = [{ role: 'user', content: 'Create a file hello.txt that says hello.' }];

for (;;) {
  const result = await generateText({ model: codex(), messages });
  messages.push(...result.response.messages);
  const requests = result.content.filter((part) => part.type === 'tool-approval-request');
  if (requests.length === 0) {
    console.log(result.text);
    break;
  }
  const answers = [];
  for (const { approvalId, toolCall } of requests) {
    const answer = await terminal.question(`${toolCall.toolName} ${JSON.stringify(toolCall.input)}\nAllow? [y/N] `);
    answers.push({ type: 'tool-approval-response', approvalId, approved: answer === 'y', providerExecuted: true });
  }
  messages.push({ role: 'tool', content: answers });
}
terminal.close();

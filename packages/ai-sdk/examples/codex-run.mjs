// Codex as a tool in another model's loop: node examples/codex-run.mjs
// Any model of the AI SDK can stand in the place of `foreman`; here it is Codex too.

import { generateText, stepCountIs } from 'ai';
import { codex as foreman, codexRun } from '@bindery/ai-sdk';

const { text } = await generateText({
  model: foreman(),
  prompt: 'Have a note written into NOTES.md, then tell me.',
  tools: {
    worker: codexRun({
      cwd: process.cwd(),
      thread: { approvalPolicy: 'untrusted', sandbox: 'read-only' },
      onFileChangeApproval: ({ changes }) => changes.every(({ path }) => path.endsWith('NOTES.md')),
    }),
  },
  stopWhen: stepCountIs(5),
});
console.log(text);

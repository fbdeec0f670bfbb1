// Drives ai-sdk-provider-codex-cli in app-server mode with the program in PROGRAM, through the AI
// SDK's streamText, and prints what it gave as JSON.
import { generateText, jsonSchema, Output, streamText } from 'ai';
import { createCodexAppServer } from 'ai-sdk-provider-codex-cli';

const asked = [];
let answer = 'accept';
const provider = createCodexAppServer({
  defaultSettings: {
    codexPath: process.env.PROGRAM,
    cwd: process.env.PROJECT,
    logger: false,
    serverRequests: {
      onCommandExecutionApproval: async ({ params }) => {
        asked.push({ command: params.command, answer });
        return { decision: answer };
      },
    },
  },
});
const result = {};

async function parts(prompt, settings, providerOptions) {
  const model = provider('gpt-5.5', settings);
  const stream = streamText({ model, prompt, providerOptions });
  const seen = [];
  for await (const part of stream.fullStream) {
    if (part.type === 'text-delta') seen.push(`text ${part.text}`);
    else if (part.type === 'tool-call') seen.push(`call ${part.toolName}`);
    else if (part.type === 'tool-result') {
      // Output on its way comes in as many pieces as it likes.
      const code = part.output?.exitCode;
      if (code !== undefined) seen.push(`result ${part.toolName} ${code}`);
    } else if (part.type === 'finish') seen.push(`finish ${part.finishReason}`);
  }
  return seen;
}

const persistent = { 'codex-app-server': { threadMode: 'persistent' } };
const first = await generateText({
  model: provider('gpt-5.5'),
  prompt: 'say one',
  providerOptions: persistent,
});
const threadId = first.finalStep.providerMetadata['codex-app-server'].threadId;
result.text = { text: first.text, usage: first.usage.totalTokens, thread: typeof threadId };

const second = await generateText({
  model: provider('gpt-5.5'),
  prompt: 'say two',
  providerOptions: { 'codex-app-server': { threadId } },
});
const sameThread = second.finalStep.providerMetadata['codex-app-server'].threadId === threadId;
result.resumed = { text: second.text, sameThread };

const free = { approvalPolicy: 'never', sandboxPolicy: 'danger-full-access' };
result.tools = await parts('run a command', free);
const careful = { approvalPolicy: 'untrusted', sandboxPolicy: 'read-only' };
result.accepted = await parts('run a careful command', careful);
answer = 'decline';
result.declined = await parts('run a careful command', careful);
result.asked = asked;

const shape = jsonSchema({
  type: 'object',
  properties: { answer: { type: 'integer' } },
  required: ['answer'],
  additionalProperties: false,
});
const shaped = await generateText({
  model: provider('gpt-5.5'),
  prompt: 'give a shape',
  output: Output.object({ schema: shape }),
});
result.shaped = shaped.output;

try {
  await generateText({ model: provider('gpt-5.5', free), prompt: 'be refused', maxRetries: 0 });
  result.refused = 'not at all';
} catch (error) {
  result.refused = error.constructor.name;
}
result.models = (await provider.listModels()).models.length > 0;
await provider.close();
console.log(JSON.stringify(result));

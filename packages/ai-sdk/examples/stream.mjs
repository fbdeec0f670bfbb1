// Everything that happens, while it happens: node examples/stream.mjs

import { streamText } from 'ai';
import { createCodex } from '@bindery/ai-sdk';

const codex = createCodex({ thread: { sandbox: 'read-only' } });
const result = streamText({ model: codex(), prompt: 'List the files here and say what they are for.' });

for await (const part of result.fullStream) {
  if (part.type === 'reasoning-delta') process.stderr.write(part.text);
  if (part.type === 'text-delta') process.stdout.write(part.text);
  if (part.type === 'tool-call') console.log(`\n[${part.toolName}] ${part.input.command ?? ''}`);
  if (part.type === 'error') console.error(part.error.message);
}

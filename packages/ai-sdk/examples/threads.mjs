// A conversation that goes on, by its history and by its id: node examples/threads.mjs

import { generateText } from 'ai';
import { codex } from '@bindery/ai-sdk';

const messages = [{ role: 'user', content: 'Remember the number seven.' }];
const first = await generateText({ model: codex(), messages });
console.log(first.text);

// The history carries the thread; only the new message is sent.
messages.push(...first.response.messages, { role: 'user', content: 'Which number was it?' });
const second = await generateText({ model: codex(), messages });
console.log(second.text);

// By id, later or elsewhere; `fork: true` leaves the thread as it is.
const { threadId } = second.providerMetadata.codex;
const third = await generateText({
  model: codex(),
  prompt: 'And twice that number?',
  providerOptions: { codex: { threadId, fork: true } },
});
console.log(third.text);

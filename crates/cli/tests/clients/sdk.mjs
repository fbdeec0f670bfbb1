// Drives @openai/codex-sdk with the program in PROGRAM, and prints what it gave as JSON.
import { Codex } from '@openai/codex-sdk';

const codex = new Codex({ codexPathOverride: process.env.PROGRAM });
const options = { workingDirectory: process.env.PROJECT, sandboxMode: 'danger-full-access' };
const result = {};

const thread = codex.startThread(options);
const first = await thread.run('say one');
result.run = { answer: first.finalResponse, usage: first.usage, id: typeof thread.id };

const { events } = await thread.runStreamed([
  { type: 'text', text: 'run a command' },
  { type: 'local_image', path: process.env.IMAGE },
]);
result.streamed = [];
for await (const event of events) result.streamed.push(event);

const again = codex.resumeThread(thread.id, options);
const schema = {
  type: 'object',
  properties: { answer: { type: 'integer' } },
  required: ['answer'],
  additionalProperties: false,
};
const shaped = await again.run('give a shape', { outputSchema: schema });
result.shaped = { answer: JSON.parse(shaped.finalResponse), usage: shaped.usage };
result.sameThread = again.id === thread.id;

try {
  await codex.startThread(options).run('be refused');
  result.refused = 'not at all';
} catch (error) {
  result.refused = error.constructor.name;
}

const stop = new AbortController();
try {
  const hung = await codex.startThread(options).runStreamed('hang', { signal: stop.signal });
  for await (const event of hung.events) if (event.type === 'turn.started') stop.abort();
  result.stopped = 'not at all';
} catch (error) {
  result.stopped = error.name;
}

console.log(JSON.stringify(result));

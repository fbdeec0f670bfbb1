// Threads: continued, forked, resumed by another daemon, told a foreign history; steered, stopped.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';

import { generateText, streamText } from 'ai';

import { all, gate, reply, soon, startStage, text } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const codex = stage.provider();
const model = codex();
const threadOf = (result) => result.providerMetadata.codex.threadId;

/** What Codex has written of a thread. */
function sessionOf(thread) {
  const folder = join(stage.home, 'sessions');
  const file = readdirSync(folder, { recursive: true }).find((name) => name.endsWith(`${thread}.jsonl`));
  return readFileSync(join(folder, file), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
}

test('a thread goes on by its history; only what is new is sent', async () => {
  await stage.push(reply('my name is Ada', text('Hello Ada.')), reply('who am I', text('Ada.')));
  const one = await soon(generateText({ model, prompt: 'my name is Ada' }), 'first');
  const messages = [
    { role: 'user', content: 'my name is Ada' }, ...one.response.messages, { role: 'user', content: 'who am I' },
  ];
  const two = await soon(generateText({ model, messages }), 'second');
  assert.equal(two.text, 'Ada.');
  assert.equal(threadOf(two), threadOf(one));
  const [body] = await stage.asked('who am I');
  const said = body.input.filter((item) => JSON.stringify(item).includes('my name is Ada'));
  assert.equal(said.length, 1, 'told once');
});

test('a thread goes on by its id, with another daemon', async () => {
  await stage.push(reply('remember seven', text('Seven.')), reply('which number', text('Seven it was.')));
  const one = await soon(generateText({ model, prompt: 'remember seven' }), 'first');
  await soon(stage.shutdown(), 'shutdown');
  const providerOptions = { codex: { threadId: threadOf(one) } };
  const two = await soon(generateText({ model, prompt: 'which number', providerOptions }), 'second');
  assert.equal(two.text, 'Seven it was.');
  assert.equal(threadOf(two), threadOf(one));
  assert.match(JSON.stringify((await stage.asked('which number'))[0].input), /remember seven/);
});

test('a thread may keep its history in the older form, and goes on and forks all the same', async () => {
  const older = stage.provider({ thread: { threadExtra: { historyMode: 'legacy' } } });
  await stage.push(
    reply('remember nine', text('Nine.')), reply('which one', text('Nine it was.')), reply('and apart', text('Still nine.')),
  );
  const one = await soon(generateText({ model: older(), prompt: 'remember nine' }), 'first');
  await soon(stage.shutdown(), 'shutdown');
  const providerOptions = { codex: { threadId: threadOf(one) } };
  const two = await soon(generateText({ model: older(), prompt: 'which one', providerOptions }), 'second');
  assert.deepEqual([two.text, threadOf(two)], ['Nine it was.', threadOf(one)]);
  const fork = { codex: { threadId: threadOf(one), fork: true } };
  const three = await soon(generateText({ model: older(), prompt: 'and apart', providerOptions: fork }), 'a fork');
  assert.notEqual(threadOf(three), threadOf(one));
  for (const asked of ['which one', 'and apart']) {
    assert.match(JSON.stringify((await stage.asked(asked))[0].input), /remember nine/);
  }
  const [meta, ...lines] = sessionOf(threadOf(one));
  assert.equal(meta.payload.history_mode, 'legacy');
  assert.ok(lines.some((line) => line.payload.type === 'agent_message'), 'as tools of before read it');
});

test('a history from elsewhere is told in whole to a fresh thread', async () => {
  await stage.push(reply('and now', text('Now this.')));
  const messages = [
    { role: 'system', content: 'Be brief, says the system.' },
    { role: 'user', content: 'a first question' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'an answer from elsewhere' },
        { type: 'tool-call', toolCallId: 't1', toolName: 'lookup', input: { key: 'apples' } },
      ],
    },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 't1', toolName: 'lookup', output: { type: 'text', value: 'twelve apples' } }] },
    { role: 'user', content: 'and now' },
  ];
  const result = await soon(generateText({ model, messages, allowSystemInMessages: true }), 'a history');
  assert.equal(result.text, 'Now this.');
  const input = JSON.stringify((await stage.asked('and now'))[0].input);
  for (const said of ['a first question', 'an answer from elsewhere', 'apples', 'twelve apples', 'Be brief, says the system.']) {
    assert.ok(input.includes(said), `${said} in ${input}`);
  }
});

test('a thread can be started ahead', async () => {
  const ahead = stage.provider({ thread: { developerInstructions: 'Be early.' } });
  await soon(ahead.prepare(), 'prepare');
  await stage.push(reply('early bird', text('Caught.')));
  assert.equal((await soon(generateText({ model: ahead(), prompt: 'early bird' }), 'a call')).text, 'Caught.');
  assert.match(JSON.stringify((await stage.asked('early bird'))[0].input), /Be early\./);
});

test('a fork goes its own way', async () => {
  await stage.push(reply('the root', text('Root.')), reply('the branch', text('Branch.')));
  const one = await soon(generateText({ model, prompt: 'the root' }), 'first');
  const providerOptions = { codex: { threadId: threadOf(one), fork: true } };
  const two = await soon(generateText({ model, prompt: 'the branch', providerOptions }), 'a fork');
  assert.notEqual(threadOf(two), threadOf(one));
  assert.match(JSON.stringify((await stage.asked('the branch'))[0].input), /the root/);
});

test('a session is steered', async () => {
  await stage.push(
    reply('go left', text('Going'), gate('left')), reply('go right', text('Right it is.')),
  );
  const steering = [];
  const own = stage.provider({
    onSession: (session) => {
      steering.push(stage.reached('left').then(() => session.steer('go right')).then(() => stage.open('left')));
    },
  })();
  const result = await soon(generateText({ model: own, prompt: 'go left' }), 'steering');
  await Promise.all(steering);
  assert.match(result.text, /Right it is\./);
});

test('a session is interrupted', async () => {
  await stage.push(reply('run for ever', text('Running'), { type: 'silence' }));
  let session;
  const own = stage.provider({ onSession: (told) => (session = told) })();
  const result = streamText({ model: own, prompt: 'run for ever' });
  const parts = [];
  for await (const part of result.fullStream) {
    parts.push(part);
    if (part.type === 'text-delta') await session.interrupt();
  }
  assert.ok(session.threadId && session.turnId);
  const finish = parts.at(-1);
  assert.ok(['other', 'interrupted'].includes(finish.finishReason), JSON.stringify(finish));
  assert.equal(parts.filter((part) => part.type === 'error').length, 0);
});

test('an abort ends the stream at once and the turn soon after', async () => {
  await stage.push(reply('stop me', text('Never'), { type: 'silence' }));
  const abort = new AbortController();
  const result = streamText({ model, prompt: 'stop me', abortSignal: abort.signal });
  const parts = [];
  for await (const part of result.fullStream) {
    parts.push(part.type);
    if (part.type === 'text-delta') abort.abort();
  }
  assert.equal(parts.at(-1), 'abort');
  assert.ok(!parts.includes('error'));
  await soon(stage.hungUp(2), 'Codex lets go of the model');
});

test('a stopped answer goes on in its thread', async () => {
  await stage.push(reply('stop in the middle', text('Half a'), { type: 'silence' }), reply('do go on', text('whole.')));
  const abort = new AbortController();
  const result = streamText({ model, prompt: 'stop in the middle', abortSignal: abort.signal });
  let begun;
  for await (const part of result.fullStream) {
    if (part.type === 'text-start') begun = part.providerMetadata;
    if (part.type === 'text-delta') abort.abort();
  }
  assert.ok(begun.codex.threadId && begun.codex.turnId);
  const messages = [
    { role: 'user', content: 'stop in the middle' },
    { role: 'assistant', content: [{ type: 'text', text: 'Half a', providerOptions: begun }] },
    { role: 'user', content: 'do go on' },
  ];
  const next = await soon(generateText({ model, messages }), 'the next call');
  assert.equal(next.text, 'whole.');
  assert.equal(threadOf(next), begun.codex.threadId);
});

test('an abort of generateText rejects as an abort', async () => {
  await stage.push(reply('stop me too', gate('two'), text('Never')));
  const abort = new AbortController();
  const running = generateText({ model, prompt: 'stop me too', abortSignal: abort.signal });
  await stage.reached('two');
  abort.abort();
  await assert.rejects(soon(running, 'an abort'), { name: 'AbortError' });
  await assert.rejects(generateText({ model, prompt: 'x', abortSignal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('a resumed thread is compacted where the settings say so', async () => {
  await stage.push(reply('a long story', text('Long.')));
  const one = await soon(generateText({ model, prompt: 'a long story' }), 'first');
  await soon(stage.shutdown(), 'shutdown');
  const compacting = stage.provider({ compaction: 'always' })();
  await stage.push(
    { when: { user: 'the end of it' }, steps: [text('After.')] },
    { when: {}, steps: [text('A summary of the story.')] },
  );
  const providerOptions = { codex: { threadId: threadOf(one) } };
  const two = await soon(generateText({ model: compacting, prompt: 'the end of it', providerOptions }), 'compaction');
  assert.equal(two.text, 'After.');
  assert.match(JSON.stringify((await stage.asked('the end of it')).at(-1).input), /A summary of the story/);
});

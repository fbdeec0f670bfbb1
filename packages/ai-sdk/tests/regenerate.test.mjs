// Another answer, a changed message, an object behind words: what the model is sent, what the app is given.

import assert from 'node:assert/strict';
import test from 'node:test';

import { generateText, Output, streamText, tool } from 'ai';
import { z } from 'zod';

import { all, call, exec, first, reply, soon, startStage, text, then } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const codex = stage.provider();
const model = codex();
const threadOf = (result) => result.providerMetadata.codex.threadId;
const user = (content) => ({ role: 'user', content });

/** The words of a request, Codex's own context left out. */
function words(body) {
  const messages = body.input.filter((item) => item.type === 'message' && item.role !== 'developer');
  return messages.map((item) => item.content.map((part) => part.text).join('')).filter((said) => !said.startsWith('<'));
}

test('another answer to the same words forgets the first, and its thread is left alone', async () => {
  await stage.push(reply('I am Eve', text('Hello Eve.')), reply('sing', text('La.')), reply('sing', text('Lu.')));
  const one = await soon(generateText({ model, prompt: 'I am Eve' }), 'first');
  const messages = [user('I am Eve'), ...one.response.messages, user('sing')];
  const two = await soon(generateText({ model, messages }), 'second');
  const again = streamText({ model, messages });
  assert.equal(await soon(again.text, 'again'), 'Lu.');
  const metadata = await again.providerMetadata;
  assert.equal(threadOf(two), threadOf(one));
  assert.notEqual(metadata.codex.threadId, threadOf(one));
  const asked = await stage.asked('sing');
  assert.deepEqual(words(asked.at(-1)), ['I am Eve', 'Hello Eve.', 'sing']);
  // The new answer names its thread, signed: the conversation goes on there.
  await stage.push(reply('and then', text('Then.')));
  const more = [...messages, ...(await again.response).messages, user('and then')];
  const next = await soon(generateText({ model, messages: more }), 'next');
  assert.equal(threadOf(next), metadata.codex.threadId);
  assert.deepEqual(words((await stage.asked('and then')).at(-1)), ['I am Eve', 'Hello Eve.', 'sing', 'Lu.', 'and then']);
});

test('a message changed some turns back goes on from there', async () => {
  await stage.push(reply('one?', text('1')), reply('two?', text('2')), reply('three?', text('3')), reply('zwei?', text('II')));
  const one = await soon(generateText({ model, prompt: 'one?' }), 'one');
  const so = [user('one?'), ...one.response.messages];
  const two = await soon(generateText({ model, messages: [...so, user('two?')] }), 'two');
  await soon(generateText({ model, messages: [...so, user('two?'), ...two.response.messages, user('three?')] }), 'three');
  const changed = await soon(generateText({ model, messages: [...so, user('zwei?')] }), 'changed');
  assert.equal(changed.text, 'II');
  assert.deepEqual(words((await stage.asked('zwei?'))[0]), ['one?', '1', 'zwei?']);
});

test('an object is read from the last message, whatever was said before it', async () => {
  const output = Output.object({ schema: z.object({ a: z.number() }) });
  for (const phases of [[undefined, undefined], ['commentary', 'final_answer']]) {
    const said = (words, phase) => (phase ? { ...text(words), phase } : text(words));
    const script = (prompt) => [
      first(prompt, said('I will look.', phases[0]), exec('true', `c-${prompt}`)),
      then(prompt, said('{"a":1}', phases[1])),
    ];
    const [whole, streamed] = [`whole ${phases[0]}`, `streamed ${phases[0]}`];
    await stage.push(...script(whole), ...script(streamed));
    const generated = await soon(generateText({ model, prompt: whole, output }), 'whole');
    assert.deepEqual(generated.output, { a: 1 });
    assert.match(generated.reasoningText, /I will look\./);
    const stream = streamText({ model, prompt: streamed, output });
    assert.equal(await soon(stream.text, 'text'), '{"a":1}');
    assert.deepEqual(await soon(stream.output, 'output'), { a: 1 });
  }
});

test('the text of an answer is its last message', async () => {
  await stage.push(first('look', text('I will look.'), exec('true', 'c9')), then('look', text('Done.')));
  assert.equal((await soon(generateText({ model, prompt: 'look' }), 'answer')).text, 'Done.');
});

test('calls that a slow model makes one by one are one step', async () => {
  const add = (name) => tool({ description: name, inputSchema: z.object({}), execute: () => name });
  await stage.push(
    first('both', call('red', {}, 'p1'), { type: 'delay', ms: 300 }, call('blue', {}, 'p2')), then('both', text('purple')),
  );
  const steps = [];
  const result = streamText({
    model, prompt: 'both', tools: { red: add('red'), blue: add('blue') },
    onStepFinish: (step) => steps.push(step.toolCalls.length), stopWhen: ({ steps }) => steps.length > 3,
  });
  await soon(all(result.fullStream), 'stream');
  assert.equal(await result.text, 'purple');
  assert.deepEqual(steps, [2, 0]);
});

test('half a character costs no call, and a tool with a name of Codex’s is refused by name', async () => {
  await stage.push(reply('cut', text('ok')));
  const cut = await soon(generateText({ model, prompt: 'cut \ud83d' }), 'half');
  assert.equal(cut.text, 'ok');
  assert.match(JSON.stringify(cut.warnings), /U\+FFFD/);
  const tools = { exec_command: tool({ description: 'mine', inputSchema: z.object({}), execute: () => 1 }) };
  await assert.rejects(generateText({ model, prompt: 'no', tools, maxRetries: 0 }), /exec_command/);
});


// What a call gives back: text, reasoning, usage, warnings, files, structured output.

import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import test from 'node:test';

import { generateText, jsonSchema, Output, streamText } from 'ai';

import { added, all, exec, first, patch, reasoning, reply, soon, startStage, text, then, usage } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const codex = stage.provider();
const model = codex();

test('generateText keeps reasoning, order, ids and the usage of the whole turn', async () => {
  await stage.push(
    first('story one', reasoning('I look first.'), text('Looking.'), exec('echo found', 'c1'), usage(100, 10, 20, 5)),
    then('story one', text('Found it.'), usage(200, 50, 30, 7)),
  );
  const result = await soon(generateText({ model, prompt: 'story one' }), 'generateText');
  const content = result.steps[0].content;
  assert.deepEqual(content.map((part) => part.type).filter((type) => type !== 'custom'), [
    'reasoning', 'text', 'tool-call', 'tool-result', 'text',
  ]);
  assert.equal(result.reasoningText, 'I look first.');
  assert.equal(content.at(-1).text, 'Found it.');
  const ran = content.find((part) => part.type === 'tool-result');
  assert.equal(ran.providerExecuted && ran.dynamic, true);
  assert.match(JSON.stringify(ran.output), /found/);
  assert.equal(result.totalUsage.inputTokens, 300);
  assert.equal(result.totalUsage.outputTokens, 50);
  assert.equal(result.totalUsage.inputTokenDetails.cacheReadTokens, 60);
  assert.equal(result.totalUsage.outputTokenDetails.reasoningTokens, 12);
  const { threadId, turnId } = result.providerMetadata.codex;
  assert.ok(threadId && turnId);
  assert.equal(result.response.id, turnId);
  assert.equal(result.response.modelId, 'gpt-5.5');
  assert.ok(result.response.timestamp instanceof Date);
  assert.equal(result.finishReason, 'stop');
});

test('streamText streams text and reasoning as they come', async () => {
  await stage.push(reply('story two', reasoning('Hm.'), text('one two three', 4)));
  const result = streamText({ model, prompt: 'story two' });
  const parts = await soon(all(result.fullStream), 'streamText');
  const deltas = parts.filter((part) => part.type === 'text-delta').map((part) => part.text);
  assert.equal(deltas.join(''), 'one two three');
  assert.ok(deltas.length > 1, 'in pieces');
  const types = parts.map((part) => part.type);
  assert.ok(types.indexOf('reasoning-end') < types.indexOf('text-start'), types.join());
  assert.equal(parts.at(-1).finishReason, 'stop');
  assert.ok((await result.response).headers['content-type'].startsWith('text/event-stream'));
});

test('settings that Codex cannot honour are warned of', async () => {
  await stage.push(reply('story three', text('fine')));
  const result = await soon(
    generateText({ model, prompt: 'story three', temperature: 0.5, seed: 7, topP: 0.1, stopSequences: ['x'], maxOutputTokens: 9 }),
    'generateText',
  );
  const features = result.warnings.map((warning) => warning.feature);
  for (const feature of ['temperature', 'seed', 'topP', 'stopSequences', 'maxOutputTokens']) {
    assert.ok(features.includes(feature), `${feature} in ${features}`);
  }
});

test('structured output comes as an object', async () => {
  await stage.push(reply('story four', text('{"colour":"red"}')));
  const schema = jsonSchema({
    type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'], additionalProperties: false,
  });
  const result = await soon(
    generateText({ model, prompt: 'story four', output: Output.object({ schema }) }),
    'structured output',
  );
  assert.deepEqual(result.output, { colour: 'red' });
  const [body] = await stage.asked('story four');
  assert.equal(body.text.format.schema.properties.colour.type, 'string');
});

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==';

test('an image reaches the model, another file is warned of', async () => {
  await stage.push(reply('story five', text('a pixel')));
  const content = [
    { type: 'text', text: 'story five' },
    { type: 'file', data: Buffer.from(PIXEL, 'base64'), mediaType: 'image/png' },
    { type: 'file', data: Buffer.from('%PDF-1.7'), mediaType: 'application/pdf', filename: 'a.pdf' },
  ];
  const result = await soon(generateText({ model, messages: [{ role: 'user', content }] }), 'an image');
  assert.equal(result.text, 'a pixel');
  const [body] = await stage.asked('story five');
  assert.match(JSON.stringify(body.input), /"input_image"/);
  assert.match(JSON.stringify(result.warnings), /pdf/);
});

test('a command shows its output while it runs', async () => {
  await stage.push(
    first('story six', exec('until [ -e go-on ]; do echo early; sleep 0.1; done; echo late', 'c6', { yield_time_ms: 20_000 })),
    then('story six', text('ran')),
  );
  const { stream } = await model.doStream({ prompt: user('story six') });
  const seen = [];
  for await (const part of stream) {
    if (part.type !== 'tool-result') continue;
    seen.push({ preliminary: part.preliminary === true, result: part.result });
    if (part.preliminary) await writeFile(`${stage.project}/go-on`, '');
  }
  await rm(`${stage.project}/go-on`);
  const [early, late] = [seen[0], seen.at(-1)];
  assert.deepEqual([early.preliminary, early.result.status], [true, 'inProgress'], JSON.stringify(seen));
  assert.match(early.result.output, /early/);
  assert.equal(late.preliminary, false);
  assert.match(late.result.aggregatedOutput, /late/);
});

test('a patch is a tool call with its diff', async () => {
  await stage.push(first('story seven', patch(added('new.txt', 'fresh'), 'c7')), then('story seven', text('written')));
  const result = await soon(generateText({ model, prompt: 'story seven' }), 'a patch');
  const change = result.steps[0].content.find((part) => part.type === 'tool-result');
  assert.match(JSON.stringify(change.output), /fresh/);
  assert.match(JSON.stringify(change.output), /new\.txt/);
});

test('raw chunks come when they are asked for', async () => {
  await stage.push(reply('story eight', text('raw')));
  const { stream } = await model.doStream({ prompt: user('story eight'), includeRawChunks: true });
  const parts = await soon(all(stream), 'raw chunks');
  assert.ok(parts.some((part) => part.type === 'raw' && part.rawValue.method === 'turn/started'));
});

test('a reader who waits loses nothing, and holds the stream back', async () => {
  const words = 'word '.repeat(2000);
  await stage.push(reply('story nine', text(words, 5)));
  const { stream } = await model.doStream({ prompt: user('story nine') });
  const reader = stream.getReader();
  await reader.read();
  await new Promise((resolve) => setTimeout(resolve, 300));
  let said = '';
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (next.value.type === 'text-delta') said += next.value.delta;
  }
  assert.equal(said, words);
});

test('an upstream that breaks off does not double the text', async () => {
  await stage.push(
    reply('story ten', { type: 'begin', text: 'Half a' }, { type: 'cut' }),
    reply('story ten', text('Half a sentence, whole.')),
  );
  const result = await soon(generateText({ model, prompt: 'story ten' }), 'a retry');
  assert.equal(result.text, 'Half a sentence, whole.');
});

test('a sub-agent neither mixes in nor ends the stream', async () => {
  const space = { namespace: 'multi_agent_v1' };
  const spawn = { type: 'call', name: 'spawn_agent', arguments: { message: 'count to three' }, call_id: 's11', ...space };
  const wait = { type: 'call', name: 'wait_agent', arguments: { targets: ['${s11.agent_id}'] }, call_id: 'w11', ...space };
  await stage.push(
    { when: { headers: { 'x-openai-subagent': 'collab_spawn' } }, steps: [text('one two three', 3)] },
    { when: { input: 'story eleven', output_of: 'w11' }, steps: [text('All done.')] },
    { when: { input: 'story eleven', output_of: 's11' }, steps: [wait] },
    first('story eleven', text('I ask.'), spawn),
  );
  const result = streamText({ model, prompt: 'story eleven' });
  const parts = await soon(all(result.fullStream), 'a sub-agent');
  const said = parts.filter((part) => part.type === 'text-delta').map((part) => part.text).join('');
  assert.equal(said, 'I ask.All done.');
  assert.equal(parts.at(-1).finishReason, 'stop');
});

test('the models can be listed', async () => {
  const models = await soon(codex.listModels(), 'listModels');
  assert.ok(models.length > 0 && models.some((one) => one.isDefault), JSON.stringify(models));
});

test('codex(), .languageModel and .chat are the same model; others are refused', () => {
  for (const one of [codex('gpt-5.5'), codex.languageModel('gpt-5.5'), codex.chat('gpt-5.5')]) {
    assert.equal(one.modelId, 'gpt-5.5');
    assert.equal(one.provider, 'codex');
  }
  assert.throws(() => codex.embeddingModel('x'), { name: 'AI_NoSuchModelError' });
  assert.throws(() => codex.imageModel('x'), { name: 'AI_NoSuchModelError' });
});

test('32 calls at once share one Codex', async () => {
  const stories = Array.from({ length: 32 }, (_, n) => `crowd ${n}.`);
  await stage.push(...stories.map((story, n) => reply(story, text(`answer ${n}.`))));
  const told = await soon(
    Promise.all(stories.map((prompt) => generateText({ model, prompt }))), 'a crowd', 120_000,
  );
  told.forEach((result, n) => assert.equal(result.text, `answer ${n}.`));
});

function user(words) {
  return [{ role: 'user', content: [{ type: 'text', text: words }] }];
}

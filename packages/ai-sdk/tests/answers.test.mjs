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
  assert.deepEqual(content.map((part) => part.type), ['reasoning', 'reasoning', 'tool-call', 'tool-result', 'text']);
  // What was said on the way to the answer is not part of it.
  assert.deepEqual(result.reasoning.map((part) => part.text), ['I look first.', 'Looking.']);
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

test('every option of a call works or is warned of', async () => {
  const prompt = 'story three';
  await stage.push({ ...reply(prompt, text('fine')), times: 'always' });
  const unused = { type: 'provider', id: 'openai.web_search', name: 'web_search', args: {} };
  const table = [
    ['temperature', { temperature: 0.5 }], ['topP', { topP: 0.1 }], ['topK', { topK: 3 }], ['seed', { seed: 7 }],
    ['presencePenalty', { presencePenalty: 1 }], ['frequencyPenalty', { frequencyPenalty: 1 }],
    ['stopSequences', { stopSequences: ['x'] }], ['maxOutputTokens', { maxOutputTokens: 9 }],
    ['toolChoice', { toolChoice: { type: 'required' } }], ['toolChoice', { toolChoice: { type: 'tool', toolName: 'x' } }],
    ['responseFormat', { responseFormat: { type: 'json' } }],
    ['headers', { headers: { 'x-own': 'secret', 'user-agent': 'ai' } }],
    ['tomorrowsSetting', { tomorrowsSetting: 1 }],
    [/web_search/, { tools: [unused] }],
    // These work, or ask for nothing.
    [undefined, { toolChoice: { type: 'auto' } }], [undefined, { responseFormat: { type: 'text' } }],
    [undefined, { headers: { 'user-agent': 'ai', 'x-none': undefined } }], [undefined, { includeRawChunks: true }],
    [undefined, { abortSignal: new AbortController().signal }], [undefined, { temperature: undefined }],
    [undefined, { providerOptions: { codex: { effort: 'low' }, openai: { store: true } } }],
  ];
  for (const [feature, options] of table) {
    const { stream, request } = await model.doStream({ prompt: user(prompt), ...options });
    const [{ type, warnings }] = await soon(all(stream), prompt);
    assert.equal(type, 'stream-start');
    const told = warnings.map((warning) => `${warning.type} ${warning.feature}`);
    if (feature instanceof RegExp) assert.match(told.join(), feature);
    else assert.deepEqual(told, feature === undefined ? [] : [`unsupported ${feature}`], JSON.stringify(options));
    assert.doesNotMatch(JSON.stringify([warnings, request]), /secret/, 'header values stay where they are');
  }
});

test('warnings reach the caller of the SDK', async () => {
  await stage.push(reply('story 3b', text('fine')));
  const result = await soon(
    generateText({ model, prompt: 'story 3b', temperature: 0.5, headers: { 'x-own': '1' } }), 'warnings',
  );
  assert.deepEqual(result.warnings.map((warning) => warning.feature).sort(), ['headers', 'temperature']);
  assert.match(JSON.stringify(result.warnings), /x-own/);
});

test("V4's reasoning is the effort", { skip: model.specificationVersion === 'v3' && 'V3 has no such option' }, async () => {
  await stage.push(reply('story 3c', text('fine')));
  const result = await soon(generateText({ model, prompt: 'story 3c', reasoning: 'low' }), 'reasoning');
  assert.deepEqual(result.warnings, []);
  assert.equal((await stage.asked('story 3c'))[0].reasoning.effort, 'low');
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

test('a page that was opened is a source, a search is a tool that the provider runs', async () => {
  const found = (id, action) => ({ type: 'item', item: { type: 'web_search_call', id, status: 'completed', action } });
  await stage.push(
    reply('story 7b', { type: 'web_search', query: 'rust news' }, found('ws1', { type: 'open_page', url: 'https://a.example/x' }),
      found('ws2', { type: 'find_in_page', url: 'https://b.example/y', pattern: 'z' }), text('Read.')),
  );
  const result = await soon(generateText({ model, prompt: 'story 7b' }), 'a search');
  assert.equal(result.text, 'Read.');
  const searches = result.content.filter((part) => part.toolName === 'codex_web_search');
  assert.deepEqual(searches.map((part) => part.type), ['tool-call', 'tool-result', 'tool-call', 'tool-result', 'tool-call', 'tool-result']);
  assert.ok(searches.every((part) => part.dynamic && part.providerExecuted));
  assert.equal(searches[0].input.query, 'rust news');
  assert.deepEqual(result.sources.map(({ sourceType, url }) => [sourceType, url]), [['url', 'https://a.example/x'], ['url', 'https://b.example/y']]);
  assert.equal(new Set(result.sources.map((source) => source.id)).size, 2);
});

test('an image that Codex looks at is a tool with its path', async () => {
  await writeFile(`${stage.project}/dot.png`, Buffer.from(PIXEL, 'base64'));
  const look = { type: 'call', name: 'view_image', arguments: { path: 'dot.png' }, call_id: 'v1' };
  await stage.push(first('story 7d', look), then('story 7d', text('A dot.')));
  const result = await soon(generateText({ model, prompt: 'story 7d' }), 'an image');
  const viewed = result.content.find((part) => part.type === 'tool-call');
  assert.deepEqual([viewed.toolName, viewed.input], ['codex_image_view', { path: `${stage.project}/dot.png` }]);
  assert.equal(result.text, 'A dot.');
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
  assert.equal(said, 'I ask.\n\nAll done.');
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

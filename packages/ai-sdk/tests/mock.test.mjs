// The same story told by Codex and by the SDK's own mock model: the SDK makes the same of both.

import assert from 'node:assert/strict';
import test from 'node:test';

import * as ai from 'ai';
import * as mocks from 'ai/test';
import { z } from 'zod';

import { all, call, exec, first, reasoning, soon, startStage, text, then, usage } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const model = stage.provider()();
const v4 = model.specificationVersion === 'v4';
const Mock = v4 ? mocks.MockLanguageModelV4 : mocks.MockLanguageModelV3;

test('the specification is that of the installed major', () => {
  assert.equal(v4, 'MockLanguageModelV4' in mocks);
});

const tokens = (input, cached, output, thought) => ({
  inputTokens: { total: input, noCache: input - cached, cacheRead: cached, cacheWrite: 0 },
  outputTokens: { total: output, text: output - thought, reasoning: thought },
});
const end = (unified, used) => ({ type: 'finish', finishReason: { unified, raw: unified }, usage: used });
const said = (id, words) => [
  { type: 'text-start', id }, { type: 'text-delta', id, delta: words }, { type: 'text-end', id },
];
const begun = [{ type: 'stream-start', warnings: [] }, { type: 'response-metadata', id: 'r', modelId: 'gpt-5.5', timestamp: new Date(0) }];

/** A mock model that tells these steps, one per call. */
function mock(...steps) {
  let step = 0;
  return new Mock({
    doStream: async () => ({ stream: ai.simulateReadableStream({ chunks: [...begun, ...steps[step++]] }) }),
  });
}

/** What does not depend on who tells the story. */
function told(parts) {
  return parts.map((part) => stripped(part));
}

const OWN = new Set(['id', 'providerMetadata', 'callProviderMetadata', 'request', 'response', 'toolCallId', 'rawFinishReason', 'timestamp', 'performance', 'raw', 'messages', 'dynamicInput', 'output', 'result']);

function stripped(value) {
  if (Array.isArray(value)) return value.map(stripped);
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).filter(([key, inner]) => !OWN.has(key) && inner !== undefined);
  return Object.fromEntries(kept.map(([key, inner]) => [key, stripped(inner)]));
}

async function streamed(language, options) {
  return told(await soon(all(ai.streamText({ model: language, ...options }).fullStream), 'a story'));
}

test('text and reasoning', async () => {
  await stage.push(first('plain story', reasoning('Hm.'), text('Once.'), usage(100, 10, 20, 5)));
  const same = mock([
    { type: 'reasoning-start', id: '1' }, { type: 'reasoning-delta', id: '1', delta: 'Hm.' }, { type: 'reasoning-end', id: '1' },
    ...said('2', 'Once.'), end('stop', tokens(100, 10, 20, 5)),
  ]);
  const options = { prompt: 'plain story' };
  assert.deepEqual(await streamed(model, options), await streamed(same, options));
});

test('a command run by Codex', async () => {
  await stage.push(first('command story', exec('true', 'c1'), usage(1, 0, 1, 0)), then('command story', text('Ran.'), usage(2, 0, 2, 0)));
  const options = { prompt: 'command story' };
  const ours = await streamed(model, options);
  const input = ours.find((part) => part.type === 'tool-call').input;
  const run = { toolCallId: 'c1', toolName: ours.find((part) => part.type === 'tool-call').toolName, dynamic: true };
  const same = mock([
    { type: 'tool-input-start', id: 'c1', toolName: run.toolName, providerExecuted: true, dynamic: true },
    { type: 'tool-input-delta', id: 'c1', delta: JSON.stringify(input) },
    { type: 'tool-input-end', id: 'c1' },
    { type: 'tool-call', ...run, input: JSON.stringify(input), providerExecuted: true },
    { type: 'tool-result', ...run, result: {} },
    ...said('2', 'Ran.'), end('stop', tokens(3, 0, 3, 0)),
  ]);
  assert.deepEqual(ours.filter((part) => !part.preliminary), await streamed(same, options));
});

test('tools of the app over two steps', async () => {
  await stage.push(
    first('tool story', call('colour', { name: 'red' }, 't1'), usage(10, 0, 1, 0)),
    then('tool story', text('Red.'), usage(20, 0, 2, 0)),
  );
  const colour = ai.tool({ description: 'A colour', inputSchema: z.object({ name: z.string() }), execute: () => '#f00' });
  const options = { prompt: 'tool story', tools: { colour }, stopWhen: ai.stepCountIs(3) };
  const args = '{"name":"red"}';
  const same = mock(
    [
      { type: 'tool-input-start', id: 't1', toolName: 'colour' },
      { type: 'tool-input-delta', id: 't1', delta: args },
      { type: 'tool-input-end', id: 't1' },
      { type: 'tool-call', toolCallId: 't1', toolName: 'colour', input: args },
      // Codex tells what a request used once its tools have answered.
      end('tool-calls', { inputTokens: {}, outputTokens: {} }),
    ],
    [...said('2', 'Red.'), end('stop', tokens(30, 0, 3, 0))],
  );
  assert.deepEqual(await streamed(model, options), await streamed(same, options));
});

test('a search and the page it opened', async () => {
  const opened = { type: 'web_search_call', id: 'ws', status: 'completed', action: { type: 'open_page', url: 'https://a.example/x' } };
  await stage.push(first('search story', { type: 'item', item: opened }, text('Read.'), usage(1, 0, 1, 0)));
  const options = { prompt: 'search story' };
  const ours = await streamed(model, options);
  const { input } = ours.find((part) => part.type === 'tool-call');
  const run = { toolCallId: 'ws', toolName: 'codex_web_search', dynamic: true };
  const same = mock([
    { type: 'tool-input-start', id: 'ws', toolName: run.toolName, providerExecuted: true, dynamic: true },
    { type: 'tool-input-delta', id: 'ws', delta: JSON.stringify(input) },
    { type: 'tool-input-end', id: 'ws' },
    { type: 'tool-call', ...run, input: JSON.stringify(input), providerExecuted: true },
    { type: 'tool-result', ...run, result: {} },
    { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example/x' },
    ...said('2', 'Read.'), end('stop', tokens(1, 0, 1, 0)),
  ]);
  assert.deepEqual(ours, await streamed(same, options));
});

test('a command that waits to be allowed', async () => {
  const careful = stage.provider({ thread: { approvalPolicy: 'untrusted', sandbox: 'read-only' } })();
  await stage.push(first('asking story', exec('touch x', 'a1'), usage(1, 0, 1, 0)));
  const options = { prompt: 'asking story' };
  const ours = await streamed(careful, options);
  const { input } = ours.find((part) => part.type === 'tool-call');
  const run = { toolCallId: 'a1', toolName: 'codex_command_execution', dynamic: true };
  const { approvalId } = ours.find((part) => part.type === 'tool-approval-request');
  const same = mock([
    { type: 'tool-input-start', id: 'a1', toolName: run.toolName, providerExecuted: true, dynamic: true },
    { type: 'tool-input-delta', id: 'a1', delta: JSON.stringify(input) },
    { type: 'tool-input-end', id: 'a1' },
    { type: 'tool-call', ...run, input: JSON.stringify(input), providerExecuted: true },
    { type: 'tool-approval-request', approvalId, toolCallId: 'a1' },
    end('tool-calls', { inputTokens: {}, outputTokens: {} }),
  ]);
  assert.deepEqual(ours, await streamed(same, options));
});

test('an error of the model', async () => {
  await stage.push({ ...first('sad story', { type: 'status', status: 400, body: { error: { message: 'No.' } } }), times: 'always' });
  const options = { prompt: 'sad story', maxRetries: 0, onError: () => undefined };
  // An answer that says nothing has a part of its own to be gone on with by, where there is one for that.
  const heard = await streamed(model, options);
  const ours = heard.filter((part) => part.type !== 'custom');
  assert.equal(heard.length - ours.length, v4 ? 1 : 0);
  const { error } = ours.find((part) => part.type === 'error');
  const same = mock([{ type: 'error', error }, end('error', { inputTokens: {}, outputTokens: {} })]);
  assert.deepEqual(ours, await streamed(same, options));
});

test('both specifications tell every SDK that takes them the same', { skip: !v4 && 'ai@6 takes V3 alone' }, async () => {
  await stage.push({ ...first('double story', reasoning('Hm.'), text('Once.'), usage(100, 10, 20, 5)), times: 'always' });
  const options = { prompt: 'double story' };
  const third = stage.provider({ specification: 'v3' })();
  assert.equal(third.specificationVersion, 'v3');
  const kept = (parts) => parts.filter((part) => part.type !== 'raw');
  assert.deepEqual(kept(await streamed(third, options)), kept(await streamed(model, options)));
});

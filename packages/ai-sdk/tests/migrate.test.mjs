// Code written for another provider runs when only the name of the package in its imports is changed.

import assert from 'node:assert/strict';
import test from 'node:test';

import { generateText, streamText } from 'ai';

import { all, call, exec, first, gate, reply, soon, startStage, text, then } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const transport = { type: 'stdio', stdio: { command: stage.codex } };

test('handlers without a schema are called, and told of their call', async () => {
  const { createCodexAppServer } = await import('@bindery/ai-sdk');
  await stage.push(first('call the handler', call('lookUp', { word: 'fox' }, 'h1')), then('call the handler', text('A fox.')));
  const seen = [];
  const provider = createCodexAppServer({
    transport,
    defaultThreadSettings: { cwd: stage.project },
    toolHandlers: {
      lookUp: async (args, { toolName, threadId, turnId, callId }) => {
        seen.push([args.word, toolName, callId, typeof threadId, typeof turnId]);
        return { success: true, contentItems: [{ type: 'inputText', text: 'an animal' }] };
      },
    },
  });
  stage.before(() => provider.shutdown());
  const result = await soon(generateText({ model: provider(), prompt: 'call the handler' }), 'a handler');
  assert.equal(result.text, 'A fox.');
  assert.deepEqual(seen, [['fox', 'lookUp', 'h1', 'string', 'string']]);
  assert.match(JSON.stringify((await stage.asked('call the handler')).at(-1).input), /an animal/);
});

test('options and metadata are found under the id that the package exports', async () => {
  const { CODEX_PROVIDER_ID, createCodexProvider } = await import('@bindery/ai-sdk');
  await stage.push(reply('under the id', text('One.')), reply('goes on', text('Two.')));
  const provider = createCodexProvider({ transport, defaultThreadSettings: { cwd: stage.project } });
  stage.before(() => provider.shutdown());
  const providerOptions = { [CODEX_PROVIDER_ID]: { effort: 'low' } };
  const one = await soon(generateText({ model: provider(), prompt: 'under the id', providerOptions }), 'one');
  assert.deepEqual(one.warnings, []);
  const threadId = one.providerMetadata[CODEX_PROVIDER_ID].threadId;
  assert.equal(typeof threadId, 'string');
  const two = await soon(generateText({ model: provider(), prompt: 'goes on', providerOptions: { [CODEX_PROVIDER_ID]: { threadId } } }), 'two');
  assert.equal(two.providerMetadata[CODEX_PROVIDER_ID].threadId, threadId);
});

test('models say what they can be shown', async () => {
  const { createCodexAppServer } = await import('@bindery/ai-sdk');
  const provider = createCodexAppServer({ transport });
  stage.before(() => provider.shutdown());
  const models = await soon(provider.listModels(), 'models');
  assert.ok(models.length > 0);
  assert.ok(models.some(({ inputModalities }) => inputModalities.includes('image')), JSON.stringify(models));
});

test('a session says whether it runs, takes items, and refuses when it is over', async () => {
  const { createCodexAppServer } = await import('@bindery/ai-sdk');
  await stage.push(
    first('a long walk', gate('walk'), exec('true', 's1')),
    { when: { input: 'a long walk', after_tool: true }, steps: [text('Home.')] },
    { when: { user: 'and the wind' }, steps: [text('Home.')] },
  );
  let session;
  let begin;
  const begun = new Promise((resolve) => (begin = resolve));
  const provider = createCodexAppServer({
    transport,
    defaultThreadSettings: { cwd: stage.project },
    onSessionCreated: async (given) => begin((session = given)),
  });
  stage.before(() => provider.shutdown());
  const parts = all(streamText({ model: provider(), prompt: 'a long walk' }).fullStream);
  await soon(begun, 'a session');
  assert.equal(session.isActive(), true);
  await soon(session.injectMessage([{ type: 'text', text: 'mind the rain', text_elements: [] }, { type: 'text', text: 'and the snow' }]), 'items');
  await soon(session.injectMessage('and the wind'), 'text');
  await stage.open('walk');
  const ended = (await soon(parts, 'a walk')).at(-1);
  assert.equal(ended.finishReason, 'stop');
  const heard = JSON.stringify(await stage.asked('a long walk'));
  for (const words of ['mind the rain', 'and the snow', 'and the wind']) assert.ok(heard.includes(words), words);
  assert.equal(session.isActive(), false);
  await assert.rejects(session.injectMessage('too late'), /no longer active/);
  await session.interrupt();
});

test('the provider with nothing set is there under its old name', async () => {
  const { codexAppServer } = await import('@bindery/ai-sdk');
  assert.equal(codexAppServer('gpt-5.5').modelId, 'gpt-5.5');
});

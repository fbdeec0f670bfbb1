// Programs written for `ai-sdk-provider-codex-cli` run when only the name of the package in their imports is changed.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';

import { generateText, streamText } from 'ai';
import {
  CODEX_REASONING_EFFORTS, codexAppServer, codexCli, codexExec, createCodexAppServer, createCodexCli, createCodexExec,
  createSdkMcpServer, isAuthenticationError, isUnsupportedFeatureError, listModels, tool,
} from '@bindery/ai-sdk/codex-cli';
import { z } from 'zod';

import { all, call, exec, first, gate, reply, soon, startStage, text, then } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const place = { codexPath: stage.codex, cwd: stage.project };

function appServer(settings = {}) {
  const provider = createCodexAppServer({ defaultSettings: { ...place, ...settings } });
  stage.before(() => provider.close());
  return provider;
}

test('a model of the exec mode answers, streams, and takes the options of a call', async () => {
  const provider = createCodexExec({ defaultSettings: { ...place, sandboxMode: 'read-only', skipGitRepoCheck: true, verbose: false } });
  stage.before(() => provider.close());
  assert.equal(createCodexCli, createCodexExec);
  await stage.push(reply('exec one', text('One.')), reply('exec two', text('Two words.', 4)));
  const providerOptions = { 'codex-cli': { reasoningEffort: 'low', textVerbosity: 'low' } };
  const one = await soon(generateText({ model: provider('gpt-5.5'), prompt: 'exec one', providerOptions }), 'one');
  assert.deepEqual([one.text, one.warnings], ['One.', []]);
  assert.equal(typeof one.providerMetadata['codex-cli'].threadId, 'string');
  const [body] = await stage.asked('exec one');
  assert.deepEqual([body.reasoning.effort, body.text.verbosity], ['low', 'low']);
  const parts = await soon(all(streamText({ model: provider('gpt-5.5'), prompt: 'exec two' }).fullStream), 'two');
  assert.equal(parts.filter(({ type }) => type === 'text-delta').map((part) => part.text).join(''), 'Two words.');
});

test('handlers are asked in the words of the protocol; without one the answer is no', async () => {
  await stage.push(
    first('may it run', exec('touch ran', 'c1')), then('may it run', text('Ran.')),
    first('may it not', exec('touch not', 'c2')), then('may it not', text('No.')),
    first('it may all', exec('touch all', 'c3')), then('it may all', text('All.')),
  );
  const seen = [];
  const guarded = { approvalPolicy: 'untrusted', sandboxPolicy: 'workspace-write' };
  const provider = appServer({
    ...guarded,
    serverRequests: {
      onCommandExecutionApproval: async ({ id, method, params }) => {
        seen.push([typeof id, method, params.command.includes('touch ran'), params.itemId]);
        return { decision: 'accept' };
      },
    },
  });
  assert.equal((await soon(generateText({ model: provider('gpt-5.5'), prompt: 'may it run' }), 'asked')).text, 'Ran.');
  assert.deepEqual(seen, [['string', 'item/commandExecution/requestApproval', true, 'c1']]);
  await soon(generateText({ model: appServer(guarded)('gpt-5.5'), prompt: 'may it not' }), 'declined');
  assert.equal(existsSync(`${stage.project}/not`), false);
  await soon(generateText({ model: appServer({ ...guarded, autoApprove: true })('gpt-5.5'), prompt: 'it may all' }), 'approved');
  assert.equal((await stage.asked('it may all')).length, 2);
});

test('a persistent model goes on with its thread, `resume` with another', async () => {
  await stage.push(reply('keep this', text('Kept.')), reply('what was it', text('This.')), reply('once more', text('Again.')));
  const model = appServer()('gpt-5.5', { threadMode: 'persistent' });
  const one = await soon(generateText({ model, prompt: 'keep this' }), 'one');
  const two = await soon(generateText({ model, prompt: 'what was it' }), 'two');
  const { threadId } = one.providerMetadata['codex-app-server'];
  assert.equal(two.providerMetadata['codex-app-server'].threadId, threadId);
  const providerOptions = { 'codex-app-server': { resume: threadId } };
  const three = await soon(generateText({ model: appServer()('gpt-5.5'), prompt: 'once more', providerOptions }), 'three');
  assert.equal(three.providerMetadata['codex-app-server'].threadId, threadId);
});

test('tools of an SDK server run here, with their input checked', async () => {
  await stage.push(first('add them', call('add', { a: 2, b: 3 }, 't1')), then('add them', text('Five.')));
  const add = tool({
    name: 'add', description: 'Adds', parameters: z.object({ a: z.number(), b: z.number() }), execute: async ({ a, b }) => a + b,
  });
  const provider = appServer({ mcpServers: { sums: createSdkMcpServer({ name: 'sums', tools: [add] }) } });
  assert.equal((await soon(generateText({ model: provider('gpt-5.5'), prompt: 'add them' }), 'a tool')).text, 'Five.');
  assert.match(JSON.stringify((await stage.asked('add them')).at(-1).input), /"output":[^]*5/);
  assert.throws(() => add.execute({ a: 'two' }));
});

test('sessions, models and errors are told as there', async () => {
  await stage.push(first('walk on', gate('walk'), exec('true', 'w1')), { when: { input: 'walk on', after_tool: true }, steps: [text('Home.')] }, { when: { user: 'faster' }, steps: [text('Home.')] });
  let begin;
  const begun = new Promise((resolve) => (begin = resolve));
  const provider = appServer({ onSessionCreated: begin });
  const parts = all(streamText({ model: provider('gpt-5.5'), prompt: 'walk on' }).fullStream);
  const session = await soon(begun, 'a session');
  await soon(session.injectMessage([{ type: 'text', text: 'faster' }]), 'words');
  await stage.open('walk');
  await soon(parts, 'a walk');
  assert.equal(session.isActive(), false);
  assert.match(JSON.stringify(await stage.asked('walk on')), /faster/);
  const { models, defaultModel } = await soon(listModels(place), 'models');
  assert.ok(models.includes(defaultModel));
  assert.deepEqual([isAuthenticationError(new Error('x')), isUnsupportedFeatureError(new Error('x'))], [false, false]);
});

test('what cannot be is refused, what does nothing is named, the rest is there', async (t) => {
  assert.ok(CODEX_REASONING_EFFORTS.includes('high'));
  assert.equal(codexCli, codexExec);
  assert.equal(codexAppServer('m').modelId, 'm');
  assert.throws(() => createCodexExec({ defaultSettings: { profile: 'p' } }), /profile/);
  assert.throws(() => createCodexExec({ defaultSettings: { sandbox: 'read-only' } }), { name: 'AI_InvalidArgumentError' });
  assert.throws(() => createCodexExec()('m', { sandboxMode: 'readonly' }), { name: 'AI_InvalidArgumentError' });
  assert.throws(() => createCodexAppServer()('m', { approvalPolicy: 'maybe' }), { name: 'AI_InvalidArgumentError' });
  const warned = new Promise((resolve) => process.once('warning', resolve));
  createCodexAppServer({ defaultSettings: { minCodexVersion: '0.1.0', serverRequests: { onUnhandled: () => undefined } } });
  assert.match((await warned).message, /minCodexVersion, serverRequests\.onUnhandled/);
  const refused = createCodexExec({ defaultSettings: place })('m').doGenerate({ prompt: [], providerOptions: { 'codex-cli': { effrt: 'low' } } });
  await assert.rejects(refused, { name: 'AI_InvalidArgumentError' });
  t.diagnostic('names of the other package that are not here: ExecLanguageModel, createLocalMcpServer, UnsupportedFeatureError');
});

// Settings that are unknown or wrong are refused before anything starts; a misspelled sandbox is never no sandbox.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';

import { generateText, streamText } from 'ai';
import { codexRun, createCodex, createCodexAppServer } from '@bindery/ai-sdk';

import { exec, first, soon, startStage, text, then } from './support/stage.mjs';

const INVALID = 'AI_InvalidArgumentError';
// Nothing can be started with it: a refusal comes before.
const NOWHERE = { bindery: '/no/such/program' };

const GUARDS = [
  [{ sandbox: 'readonly' }, /'read-only'/],
  [{ sandbox: 'readOnly' }, /'read-only'/],
  [{ sandbox: 'READ-ONLY' }, /'read-only'/],
  [{ sandbox: '' }, /'read-only'/],
  [{ sandbox: null }, /'read-only'/],
  [{ sandbox: true }, /'read-only'/],
  [{ sandbox: ['read-only'] }, /'read-only'/],
  [{ sandbox: { type: 'readOnly' } }, /'read-only'/],
  [{ sandboxMode: 'read-only' }, /did you mean `sandbox`/],
  [{ sandbox_mode: 'read-only' }, /did you mean `sandbox`/],
  [{ Sandbox: 'read-only' }, /did you mean `sandbox`/],
  [{ sandbx: 'read-only' }, /did you mean `sandbox`/],
  [{ approvalPolicy: 'unless-trusted' }, /'untrusted'/],
  [{ approvalPolicy: { granular: { rule: true } } }, /did you mean `rules`/],
  [{ approvalPolicy: { granular: { rules: 'yes' } } }, /true or false/],
  [{ approvalPolicy: {} }, /granular/],
  [{ approvalpolicy: 'never' }, /did you mean `approvalPolicy`/],
  [{ sandboxPolicy: { type: 'read-only' } }, /readOnly/],
  [{ sandboxPolicy: 'readOnly' }, /an object/],
  [{ sandboxPolicy: { type: 'workspaceWrite', writable_roots: [] } }, /did you mean `writableRoots`/],
  [{ sandboxPolicy: { type: 'readOnly', networkAccess: 'no' } }, /true or false/],
  [{ threadExtra: { sandbox: 'read-only' } }, /the setting is `sandbox`/],
  [{ turnExtra: { sandboxMode: 'read-only' } }, /the setting is `sandbox`/],
  [{ turnExtra: { approval_policy: 'never' } }, /the setting is `approvalPolicy`/],
  [{ config: { sandboxMode: 'read-only' } }, /sandbox_mode/],
  [{ config: { 'sandbox-mode': 'read-only' } }, /sandbox_mode/],
  [{ config: { sandbox: 'read-only' } }, /sandbox_mode/],
  [{ config: { sandbox_mode: 'readonly' } }, /'read-only'/],
  [{ config: { approvalPolicy: 'never' } }, /approval_policy/],
  [{ cwd: '' }, /not empty/],
  [{ ephemeral: 'yes' }, /true or false/],
  [{ somethingElse: 1 }, /unknown setting/],
];

test('a wrong guard is refused by the provider, the model, the call and the tool', async () => {
  for (const [thread, message] of GUARDS) {
    const error = { name: INVALID, message };
    const told = JSON.stringify(thread);
    assert.throws(() => createCodex({ ...NOWHERE, thread }), error, told);
    const provider = createCodex(NOWHERE);
    assert.throws(() => provider(undefined, { thread }), error, told);
    assert.throws(() => provider.languageModel('x', { thread }), error, told);
    await assert.rejects(provider.prepare(undefined, { thread }), error, told);
    assert.throws(() => codexRun({ cwd: '/x', thread }), error, told);
    for (const key of ['codex', 'bindery', '@janole/ai-sdk-provider-codex-asp']) {
      const call = { prompt: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }], providerOptions: { [key]: thread } };
      await assert.rejects(provider().doGenerate(call), error, `${key} ${told}`);
      await assert.rejects(provider().doStream(call), error, `${key} ${told}`);
    }
  }
});

test('options of a call that are no object are refused', async () => {
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'x' }] }];
  for (const codex of ['fast', 1, true, []]) {
    await assert.rejects(createCodex(NOWHERE)().doStream({ prompt, providerOptions: { codex } }), { name: INVALID });
  }
});

test('a setting at the wrong place or of a wrong type is refused, with the right place', () => {
  for (const [settings, message] of [
    [{ sandbox: 'read-only' }, /did you mean `thread\.sandbox`/],
    [{ sandboxMode: 'read-only' }, /did you mean `thread\.sandbox`/],
    [{ approvalPolicy: 'never' }, /did you mean `thread\.approvalPolicy`/],
    [{ cwd: '/x' }, /did you mean `thread\.cwd`/],
    [{ defaultSettings: { sandbox: 'read-only' } }, /did you mean `thread`/],
    [{ turn: { sandbox: 'read-only' } }, /did you mean `thread`/],
    [{ Thread: {} }, /did you mean `thread`/],
    [{ thread: 'read-only' }, /an object/],
    [{ thread: [] }, /an object/],
    [{ onCommandApproval: 'decline' }, /a function/],
    [{ onCommandApprovals: () => 'decline' }, /did you mean `onCommandApproval`/],
    [{ turnTimeoutMs: '5' }, /milliseconds/],
    [{ turnTimeoutMs: -1 }, /milliseconds/],
    [{ turnTimeoutMs: Number.NaN }, /milliseconds/],
    [{ backend: 'Codex' }, /'codex', 'engine'/],
    [{ compaction: true }, /'always', 'never'/],
    [{ env: { A: 1 } }, /texts/],
    [{ server: { url: 'http://x', tokn: 'y' } }, /did you mean `token`/],
    [{ tools: { x: { inputSchema: {} } } }, /execute/],
    [{ threadSecret: 'hunter2' }, /32 characters$/],
    [{ allowLocalFiles: 'yes' }, /true or false/],
    [{ owner: '' }, /not empty/],
  ]) {
    assert.throws(() => createCodex(settings), { name: INVALID, message }, JSON.stringify(settings));
  }
  assert.throws(() => createCodex('read-only'), { name: INVALID });
  assert.throws(() => createCodex(null), { name: INVALID });
  assert.throws(() => createCodexAppServer({ sandbox: 'read-only' }), { name: INVALID });
  assert.throws(() => createCodexAppServer({ defaultThreadSettings: { sandboxMode: 'read-only' } }), { name: INVALID });
  createCodex({ thread: { sandbox: undefined, approvalPolicy: { granular: { rules: true } } }, onSession: undefined });
});

test('a call with a misspelled sandbox writes nothing, where the home allows everything', async () => {
  const stage = await startStage({ unrestricted: true });
  const model = stage.provider()();
  await stage.push(first('write it', exec('touch written.txt', 'w1')), then('write it', text('Written.')));
  for (const codex of [{ sandbox: 'readonly' }, { sandboxMode: 'read-only' }]) {
    await assert.rejects(generateText({ model, prompt: 'write it', providerOptions: { codex }, maxRetries: 0 }), { name: INVALID });
    const errors = [];
    const result = streamText({ model, prompt: 'write it', providerOptions: { codex }, onError: ({ error }) => errors.push(error) });
    await soon(result.consumeStream(), 'the stream ends');
    assert.deepEqual(errors.map((error) => error.name), [INVALID]);
  }
  assert.ok(!existsSync(`${stage.project}/written.txt`));
  assert.equal((await stage.asked('write it')).length, 0);
});

// Codex asks: natively, as parts of the stream and answers in the history, or through callbacks.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';

import { generateText } from 'ai';

import { added, exec, first, patch, soon, startStage, text, then } from './support/stage.mjs';

const stage = await startStage();
const careful = { approvalPolicy: 'untrusted', sandbox: 'read-only' };
const model = stage.provider({ thread: careful })();

/** Asks, answers natively, and gives both results. */
async function natively(prompt, approved, reason) {
  const asked = await soon(generateText({ model, prompt }), 'a question');
  assert.equal(asked.finishReason, 'tool-calls');
  const request = asked.content.find((part) => part.type === 'tool-approval-request');
  assert.ok(request, JSON.stringify(asked.content));
  const messages = [
    { role: 'user', content: prompt },
    ...asked.response.messages,
    {
      role: 'tool',
      content: [{ type: 'tool-approval-response', approvalId: request.approvalId, approved, reason, providerExecuted: true }],
    },
  ];
  return { asked, request, result: await soon(generateText({ model, messages }), 'the answer') };
}

const outcome = (result) => result.content.find((part) => part.type === 'tool-result' || part.type === 'tool-error');

test('a command is allowed natively and runs', async () => {
  await stage.push(first('say hello', exec('echo hello', 'n1')), then('say hello', text('Said.')));
  const { request, result } = await natively('say hello', true);
  assert.equal(request.toolCall.dynamic && request.toolCall.providerExecuted, true);
  assert.match(JSON.stringify(request.toolCall.input), /echo hello/);
  assert.equal(result.text, 'Said.');
  assert.match(JSON.stringify(outcome(result)), /hello/);
});

test('a command is denied natively and does not run', async () => {
  await stage.push(first('touch it', exec('touch denied.txt', 'n2')), then('touch it', text('Then not.')));
  const { result } = await natively('touch it', false, 'not today');
  assert.equal(result.text, 'Then not.');
  assert.ok(!existsSync(`${stage.project}/denied.txt`));
});

test('a patch is denied natively and changes nothing', async () => {
  await stage.push(
    first('write it', patch(added('patched.txt', 'no'), 'n3')), then('write it', text('Left alone.')),
  );
  const { request, result } = await natively('write it', false);
  assert.match(JSON.stringify(request.toolCall.input), /patched\.txt/);
  assert.equal(result.text, 'Left alone.');
  assert.ok(!existsSync(`${stage.project}/patched.txt`));
});

test('a patch is allowed natively and written', async () => {
  await stage.push(
    first('write this', patch(added('allowed.txt', 'yes'), 'n4')), then('write this', text('Written.')),
  );
  const { result } = await natively('write this', true);
  assert.equal(result.text, 'Written.');
  assert.ok(existsSync(`${stage.project}/allowed.txt`));
});

test('callbacks answer while the stream is open', async () => {
  for (const [decision, ran] of [['accept', true], ['decline', false], ['nonsense', false]]) {
    const prompt = `by callback: ${decision}.`;
    const seen = [];
    const own = stage.provider({
      thread: careful,
      onCommandApproval: async (request) => {
        seen.push(request);
        return decision;
      },
    })();
    await stage.push(first(prompt, exec(`echo ran`, `cb_${decision}`)), then(prompt, text('Over.')));
    const result = await soon(generateText({ model: own, prompt }), 'a callback');
    assert.equal(result.text, 'Over.');
    assert.equal(result.steps.length, 1);
    assert.match(seen[0].command, /echo ran/);
    assert.equal(seen[0].cwd, stage.project);
    assert.equal(/"ran\\n|ran\\r?\\n/.test(JSON.stringify(outcome(result))), ran, JSON.stringify(outcome(result)));
  }
});

test('a callback that throws means no, and the error is told', async () => {
  const errors = [];
  const own = stage.provider({
    thread: careful,
    onFileChangeApproval: () => {
      throw new Error('nobody home');
    },
    onCallbackError: (error) => errors.push(error.message),
  })();
  await stage.push(
    first('patch by nobody', patch(added('nobody.txt', 'x'), 'cb9')), then('patch by nobody', text('Not.')),
  );
  const result = await soon(generateText({ model: own, prompt: 'patch by nobody' }), 'a callback');
  assert.equal(result.text, 'Not.');
  assert.deepEqual(errors, ['nobody home']);
  assert.ok(!existsSync(`${stage.project}/nobody.txt`));
});

test('an unanswered question is withdrawn by a newer message', async () => {
  await stage.push(
    first('ask and wait', exec('touch waited.txt', 'w9')),
    { when: { user: 'forget it' }, steps: [text('Forgotten.')] },
  );
  const asked = await soon(generateText({ model, prompt: 'ask and wait' }), 'a question');
  const messages = [{ role: 'user', content: 'ask and wait' }, ...asked.response.messages, { role: 'user', content: 'forget it' }];
  const result = await soon(generateText({ model, messages }), 'a newer message');
  assert.equal(result.text, 'Forgotten.');
  assert.ok(!existsSync(`${stage.project}/waited.txt`));
});

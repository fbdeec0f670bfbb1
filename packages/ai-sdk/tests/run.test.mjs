// codexRun: Codex as a tool in another model's loop; and the names of the other provider.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';

import * as ai from 'ai';
import * as mocks from 'ai/test';
import { codexCallOptions, codexRun, createCodexAppServer } from '@bindery/ai-sdk';

import { added, all, call, exec, first, patch, reply, soon, startStage, text, then } from './support/stage.mjs';

const stage = await startStage();
stage.provider();
const Mock = mocks.MockLanguageModelV4 ?? mocks.MockLanguageModelV3;

/** Another model, which hands one task to Codex and then is content. */
function foreman(task) {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const steps = [
    [
      { type: 'tool-call', toolCallId: 'h1', toolName: 'codex', input: JSON.stringify({ task }) },
      { type: 'finish', finishReason: { unified: 'tool-calls', raw: 'x' }, usage },
    ],
    [
      { type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'Well done.' }, { type: 'text-end', id: '1' },
      { type: 'finish', finishReason: { unified: 'stop', raw: 'x' }, usage },
    ],
  ];
  let step = 0;
  return new Mock({
    doStream: async () => ({
      stream: ai.simulateReadableStream({ chunks: [{ type: 'stream-start', warnings: [] }, ...steps[step++]] }),
    }),
  });
}

test('a task is handed to Codex, which asks, works and reports', async () => {
  await stage.push(
    first('add a note', text('I write it.'), patch(added('note.txt', 'noted'), 'p1')), then('add a note', text('Noted.')),
  );
  const asked = [];
  const codex = codexRun({
    codex: stage.codex,
    cwd: stage.project,
    thread: { approvalPolicy: 'untrusted', sandbox: 'read-only' },
    onFileChangeApproval: ({ changes }) => {
      asked.push(changes.map((change) => change.path));
      return 'accept';
    },
  });
  const result = ai.streamText({ model: foreman('add a note'), tools: { codex }, prompt: 'go', stopWhen: ai.stepCountIs(3) });
  const parts = await soon(all(result.fullStream), 'a task');
  assert.equal(await result.text, 'Well done.');
  const reports = parts.filter((part) => part.type === 'tool-result');
  assert.ok(reports.some((part) => part.preliminary && part.output.status === 'running'), 'progress');
  const { output } = reports.at(-1);
  assert.equal(output.status, 'done');
  assert.equal(output.text, 'Noted.');
  assert.ok(output.threadId);
  assert.equal(output.steps.length, 1);
  assert.equal(asked.length, 1);
  assert.ok(existsSync(`${stage.project}/note.txt`));
});

test('what nobody may allow is refused, and Codex goes on', async () => {
  await stage.push(first('be rude', exec('touch rude.txt', 'p2')), then('be rude', text('Refused.')));
  const codex = codexRun({
    codex: stage.codex, cwd: stage.project, thread: { approvalPolicy: 'untrusted', sandbox: 'read-only' },
  });
  const reports = await soon(all(codex.execute({ task: 'be rude' })), 'a refusal');
  assert.deepEqual([reports.at(-1).status, reports.at(-1).text], ['done', 'Refused.']);
  assert.ok(!existsSync(`${stage.project}/rude.txt`));
});

test('a task goes on with an earlier one', async () => {
  await stage.push(reply('part one', text('One.')), reply('part two', text('Two.')));
  const codex = codexRun({ codex: stage.codex, cwd: stage.project });
  const one = (await soon(all(codex.execute({ task: 'part one' })), 'one')).at(-1);
  const two = (await soon(all(codex.execute({ task: 'part two', threadId: one.threadId })), 'two')).at(-1);
  assert.deepEqual([two.text, two.threadId], ['Two.', one.threadId]);
});

test('the option names of the other provider work', async () => {
  await stage.push(first('as before', call('ping', { n: 1 }, 'm1'), exec('echo run', 'm2')), then('as before', text('Pong.')));
  const seen = [];
  const provider = createCodexAppServer({
    defaultModel: 'gpt-5.5',
    defaultThreadSettings: { cwd: stage.project, approvalPolicy: 'untrusted', sandbox: 'read-only' },
    defaultTurnSettings: { effort: 'low' },
    transport: { type: 'stdio', stdio: { command: stage.codex } },
    persistent: { poolSize: 1 },
    tools: {
      ping: {
        description: 'Pings',
        inputSchema: { type: 'object', properties: { n: { type: 'number' } } },
        execute: async ({ n }) => {
          seen.push(`ping ${n}`);
          return { success: true, contentItems: [{ type: 'inputText', text: 'pong!' }] };
        },
      },
    },
    approvals: { onCommandApproval: ({ command }) => (seen.push(command.includes('echo run')), 'decline') },
    onSessionCreated: ({ threadId, injectMessage }) => seen.push(typeof threadId, typeof injectMessage),
  });
  const providerOptions = codexCallOptions({ summary: 'none' });
  const result = await soon(ai.generateText({ model: provider('gpt-5.5'), prompt: 'as before', providerOptions }), 'migrated');
  assert.equal(result.text, 'Pong.');
  assert.deepEqual(seen.sort(), ['function', 'ping 1', 'string', true].sort());
  const bodies = await stage.asked('as before');
  assert.match(JSON.stringify(bodies.at(-1).input), /pong!/);
  assert.equal(bodies[0].reasoning?.effort, 'low');
  assert.throws(() => createCodexAppServer({ transportFactory: () => undefined }), /transportFactory/);
});

test("callbacks of one call come before the provider's, in the other provider's words", async () => {
  await stage.push(
    first('once only', exec('echo once', 'o1')), then('once only', text('Ran.')),
    first('as ever', exec('echo ever', 'o2')), then('as ever', text('Not run.')),
  );
  const seen = [];
  const provider = createCodexAppServer({
    defaultThreadSettings: { cwd: stage.project, approvalPolicy: 'untrusted', sandbox: 'read-only' },
    transport: { stdio: { command: stage.codex } },
    approvals: { onCommandApproval: ({ itemId }) => (seen.push(`provider ${itemId}`), 'decline') },
  });
  const providerOptions = codexCallOptions({
    approvals: { onCommandApproval: ({ itemId, approvalId }) => (seen.push(`call ${itemId} ${typeof approvalId}`), 'accept') },
    onSessionCreated: ({ turnId }) => seen.push(typeof turnId),
  });
  const ran = await soon(ai.generateText({ model: provider(), prompt: 'once only', providerOptions }), 'a call');
  assert.deepEqual(ran.warnings, []);
  assert.equal(ran.text, 'Ran.');
  await soon(ai.generateText({ model: provider(), prompt: 'as ever' }), 'another');
  assert.deepEqual(seen, ['string', 'call o1 string', 'provider o2']);
});

test('answers to questions are taken in the shape that the other provider wants', async () => {
  const question = { id: 'colour', header: 'Colour', question: 'Which?', options: [{ label: 'Red', description: 'warm' }, { label: 'Blue', description: 'cold' }] };
  await stage.push(
    first('which colour', call('request_user_input', { questions: [question] }, 'u1')), then('which colour', text('Blue.')),
  );
  const provider = createCodexAppServer({
    defaultThreadSettings: { cwd: stage.project, config: { 'features.default_mode_request_user_input': true } },
    transport: { stdio: { command: stage.codex } },
    approvals: { onToolUserInput: ({ questions }) => ({ answers: { [questions[0].id]: { answers: [questions[0].options[1].label] } } }) },
  });
  assert.equal((await soon(ai.generateText({ model: provider(), prompt: 'which colour' }), 'a question')).text, 'Blue.');
  const heard = JSON.stringify((await stage.asked('which colour')).at(-1).input.at(-1));
  assert.match(heard, /colour[^]*Blue/);
});

test('whether to compact is asked before each call', async () => {
  await stage.push(reply('long one', text('One.')), reply('long two', text('Two.')));
  const prompts = [];
  const provider = createCodexAppServer({
    defaultThreadSettings: { cwd: stage.project },
    transport: { stdio: { command: stage.codex } },
    compaction: { shouldCompactOnResume: async ({ prompt }) => (prompts.push(prompt.length), false) },
  });
  const one = await soon(ai.generateText({ model: provider(), prompt: 'long one' }), 'one');
  const messages = [{ role: 'user', content: 'long one' }, ...one.response.messages, { role: 'user', content: 'long two' }];
  assert.equal((await soon(ai.generateText({ model: provider(), messages }), 'two')).text, 'Two.');
  assert.deepEqual(prompts, [1, 3]);
});

test('an app-server that listens already is used over a WebSocket', async () => {
  const token = join(stage.home, 'token');
  await writeFile(token, 'let-me-in', { mode: 0o600 });
  const args = ['app-server', '--listen', 'ws://127.0.0.1:0', '--ws-auth', 'capability-token', '--ws-token-file', token];
  const child = spawn(stage.codex, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  stage.before(() => child.kill('SIGKILL'));
  const url = await soon(
    (async () => {
      for await (const line of createInterface({ input: child.stderr })) {
        if (line.includes('listening on: ')) return line.split('listening on: ')[1].trim();
      }
      throw new Error('it does not listen');
    })(),
    'an app-server',
  );
  child.stderr.resume();
  const provider = (headers) => createCodexAppServer({ transport: { type: 'websocket', websocket: { url, headers } }, defaultThreadSettings: { cwd: stage.project } });
  await stage.push(reply('far away', text('Here.')));
  const far = provider({ Authorization: 'Bearer let-me-in' });
  stage.before(() => far.shutdown());
  assert.equal((await soon(ai.generateText({ model: far(), prompt: 'far away' }), 'a server')).text, 'Here.');
  assert.ok((await far.listModels()).length > 0);
  await assert.rejects(soon(ai.generateText({ model: provider()(), prompt: 'far away', maxRetries: 0 }), 'a stranger'), /401|refused|token/i);
  await assert.rejects(
    soon(ai.generateText({ model: createCodexAppServer({ transport: { websocket: { url: 'http://x' } } })(), prompt: 'x', maxRetries: 0 }), 'no address'), /ws:/,
  );
  child.kill('SIGKILL');
});

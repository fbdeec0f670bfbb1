// What goes wrong: every end is an end, with Codex's own words, and nothing outside the call.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import test from 'node:test';

import { APICallError, generateText, streamText } from 'ai';
import { BinderyError, createCodex } from '@bindery/ai-sdk';

import { alive, commandOf, descendants, programs } from './support/processes.mjs';
import { all, gate, reply, soon, startStage, status, text, until } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const model = stage.provider()();
const outside = [];
process.on('unhandledRejection', (error) => outside.push(error));
process.on('uncaughtException', (error) => outside.push(error));

test("a model's error keeps its text and rejects", async () => {
  const bad = status(400, 'The model is on holiday.');
  await stage.push({ ...reply('fail one', bad), times: 'always' });
  await assert.rejects(soon(generateText({ model, prompt: 'fail one', maxRetries: 0 }), 'an error'), (error) => {
    assert.ok(APICallError.isInstance(error), String(error));
    assert.match(error.message, /on holiday/);
    assert.equal(error.isRetryable, false);
    return true;
  });
  const parts = await soon(all(quiet('fail one').fullStream), 'an error');
  const error = parts.find((part) => part.type === 'error');
  assert.match(error.error.message, /on holiday/);
  assert.equal(parts.filter((part) => part.type === 'error').length, 1);
});

test('a used-up plan is marked, and not retried', async () => {
  const body = { error: { type: 'usage_limit_reached', message: 'The usage limit has been reached', plan_type: 'pro', resets_in_seconds: 3600 } };
  await stage.push({ ...reply('fail two', { type: 'status', status: 429, body }), times: 'always' });
  await assert.rejects(soon(generateText({ model, prompt: 'fail two', maxRetries: 2 }), 'a limit'), (error) => {
    assert.ok(APICallError.isInstance(error), String(error));
    assert.match(JSON.stringify(error.data), /usageLimit/);
    assert.equal(error.isRetryable, false);
    return true;
  });
});

test('Codex killed in mid-turn is an error and an end', async () => {
  for (const generate of [false, true]) {
    const prompt = `kill me, ${generate}`;
    const before = await requestsNow();
    await stage.push(reply(prompt, text('Half'), gate(`killed ${generate}`)));
    const running = generate
      ? generateText({ model, prompt, maxRetries: 0 }).then(() => undefined, (error) => error)
      : all(quiet(prompt).fullStream).then((parts) => parts.find((part) => part.type === 'error')?.error);
    await stage.reached(`killed ${generate}`);
    const pids = programs(stage.codex, 'app-server');
    assert.ok(pids.length > 0, `a Codex runs (${before})`);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    const error = await soon(running, 'a killed Codex');
    assert.ok(error instanceof Error, String(error));
    assert.match(error.message, /codex/i);
  }
  await stage.push(reply('after the kill', text('Back.')));
  assert.equal((await soon(generateText({ model, prompt: 'after the kill' }), 'the next call')).text, 'Back.');
});

test('a daemon killed in mid-turn is an error and an end, for a page as well, and the next call has another', async () => {
  for (const show of [(result) => result.fullStream, (result) => result.toUIMessageStream({ onError: ({ code }) => code })]) {
    const prompt = `kill it all, ${show}`;
    await stage.push(reply(prompt, text('Half'), gate('never')), reply('after that', text('Back.')));
    const codes = [];
    for await (const part of show(quiet(prompt))) {
      if (part.type === 'text-delta') await killDaemon();
      if (part.type === 'error') codes.push(part.errorText ?? part.error.code);
    }
    const next = generateText({ model, prompt: 'after that', maxRetries: 0 });
    assert.equal((await soon(next, 'the next call')).text, 'Back.');
    assert.deepEqual(codes, ['stream_cut']);
  }
});

test('a call whose daemon is killed is not made again: it may have been heard', async () => {
  // Its connection has served another call, and is closed before a word of the answer.
  const prompt = 'only once';
  await stage.push(reply('before that', text('Yes.')), { ...reply(prompt, gate('never')), times: 'always' });
  await soon(generateText({ model, prompt: 'before that' }), 'a call');
  const call = generateText({ model, prompt, maxRetries: 0 });
  call.catch(() => undefined);
  await until(async () => (await stage.asked(prompt)).length === 1, 'it was asked');
  await killDaemon();
  await assert.rejects(soon(call, 'a killed daemon'), (error) => /daemon_ended|stream_cut/.test(error.code));
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal((await stage.asked(prompt)).length, 1);
});

async function killDaemon() {
  const pids = programs(process.env.BINDERY_BIN, 'serve');
  assert.equal(pids.length, 1);
  process.kill(pids[0], 'SIGKILL');
}

test('a missing Codex is told in the call', async () => {
  const none = createCodex({ codex: '/no/such/codex' });
  await assert.rejects(soon(generateText({ model: none(), prompt: 'x', maxRetries: 0 }), 'no Codex'), /codex/i);
  await none.shutdown();
});

test('a missing bindery is told in the call, with the way to get it', async () => {
  const none = createCodex({ bindery: '/no/such/bindery' });
  await assert.rejects(generateText({ model: none(), prompt: 'x', maxRetries: 0 }), (error) => {
    assert.ok(error instanceof BinderyError);
    assert.equal(error.code, 'binary_not_found');
    return true;
  });
  const parts = await all(streamText({ model: none(), prompt: 'x', maxRetries: 0, onError: () => undefined }).fullStream);
  assert.ok(parts.some((part) => part.type === 'error' && part.error.code === 'binary_not_found'));
  const { BINDERY_BIN, PATH } = process.env;
  delete process.env.BINDERY_BIN;
  process.env.PATH = '';
  try {
    await assert.rejects(generateText({ model: createCodex()(), prompt: 'x', maxRetries: 0 }), /BINDERY_BIN/);
  } finally {
    Object.assign(process.env, { BINDERY_BIN, PATH });
  }
});

test('a server that runs already is used; a wrong token and a dead server are told in the call', async (context) => {
  const args = ['serve', '--listen', '127.0.0.1:0', '--exit-with-parent', '--ephemeral', '--announce', '--codex', stage.codex];
  const daemon = spawn(process.env.BINDERY_BIN, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  // Left behind by a test that failed, it would keep this process waiting.
  context.after(() => daemon.stdin.end());
  const { value } = await soon(createInterface({ input: daemon.stdout })[Symbol.asyncIterator]().next(), 'a daemon');
  const { url, token } = JSON.parse(value);
  await stage.push(reply('to a server', text('Served.')));
  const given = createCodex({ server: { url, token }, thread: { cwd: stage.project } });
  assert.equal((await soon(generateText({ model: given(), prompt: 'to a server' }), 'a server')).text, 'Served.');
  await given.shutdown();
  const stranger = createCodex({ server: { url, token: 'wrong' } });
  await assert.rejects(generateText({ model: stranger(), prompt: 'x', maxRetries: 0 }), (error) => {
    assert.ok(APICallError.isInstance(error));
    assert.equal(error.statusCode, 401);
    return true;
  });
  daemon.stdin.end();
  await soon(new Promise((resolve) => daemon.once('close', resolve)), 'the daemon ends');
  const dead = createCodex({ server: { url: 'http://127.0.0.1:9', token: 'x' } });
  await assert.rejects(generateText({ model: dead(), prompt: 'x', maxRetries: 0 }), /no answer from[^]*`server` names one: that must run/);
  await dead.shutdown();
});

test('neither daemon nor Codex outlives a killed app', { skip: process.platform !== 'linux' }, async () => {
  await stage.push(reply('outlive', text('Going'), gate('outlive')));
  const program = `
    import { streamText } from 'ai';
    import { createCodex } from '@bindery/ai-sdk';
    const codex = createCodex({ codex: process.env.CODEX, thread: { cwd: process.env.PROJECT } });
    const { textStream } = streamText({ model: codex(), prompt: 'outlive' });
    for await (const piece of textStream) console.log(piece);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    env: { ...process.env, CODEX: stage.codex, PROJECT: stage.project },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await soon(createInterface({ input: child.stdout })[Symbol.asyncIterator]().next(), 'the app speaks');
  const family = descendants(child.pid);
  assert.ok(family.length >= 2, `daemon and Codex run: ${family.map(commandOf)}`);
  process.kill(child.pid, 'SIGKILL');
  await until(() => family.every((pid) => !alive(pid)), 'all are gone');
});

test('an app that is done ends by itself, and one that waits for the shutdown ends after it', async () => {
  for (const last of ['', "await codex.shutdown(); console.log('Gone.');"]) {
    await stage.push(reply('one shot', text('Done.')));
    const program = `
      import { generateText } from 'ai';
      import { createCodex } from '@bindery/ai-sdk';
      const codex = createCodex({ codex: process.env.CODEX, thread: { cwd: process.env.PROJECT } });
      console.log((await generateText({ model: codex(), prompt: 'one shot' })).text);
      ${last}`;
    const env = { ...process.env, CODEX: stage.codex, PROJECT: stage.project };
    // An exit code other than 0, such as that of an await that nothing settles, throws.
    const said = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { env, timeout: 60_000 });
    assert.deepEqual(String(said).trim().split('\n'), last === '' ? ['Done.'] : ['Done.', 'Gone.']);
  }
});

test('nothing was thrown outside a call', () => assert.deepEqual(outside, []));

function quiet(prompt) {
  return streamText({ model, prompt, maxRetries: 0, onError: () => undefined });
}

async function requestsNow() {
  return (await stage.asked('')).length;
}

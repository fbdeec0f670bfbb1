// The end of one provider is not the end of another, though one daemon serves both.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { generateText, streamText } from 'ai';
import { codexRun, createCodex } from '@bindery/ai-sdk';

import { alive, programs } from './support/processes.mjs';
import { all, gate, reply, soon, startStage, text, until } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const linux = { skip: process.platform !== 'linux' };
const daemons = () => programs(process.env.BINDERY_BIN, 'serve');

/** A call that has begun to answer, and stays there until its gate opens. */
async function begun(codex, name) {
  await stage.push(reply(name, text('Half, '), gate(name), text('whole.')));
  const { fullStream } = streamText({ model: codex(), prompt: name, maxRetries: 0, onError: () => undefined });
  const parts = all(fullStream);
  await stage.reached(name);
  return { parts };
}

/** The call is over: what was said, and what went wrong. */
async function heard({ parts }, words) {
  const told = await soon(parts, words);
  const said = told.filter((part) => part.type === 'text-delta').map((part) => part.text).join('');
  return [said, told.find((part) => part.type === 'error')?.error.code];
}

test('a provider that is shut down leaves the calls of others alone', linux, async () => {
  const [one, other] = [stage.provider(), stage.provider()];
  const ours = await begun(one, 'ours');
  const theirs = await begun(other, 'theirs');
  const [daemon, ...more] = daemons();
  assert.deepEqual(more, [], 'one serves both');
  await soon(one.shutdown(), 'the shutdown');
  assert.equal((await heard(ours, 'our call'))[1], 'stream_cut');
  await stage.open('theirs');
  assert.deepEqual(await heard(theirs, 'their call'), ['Half, \n\nwhole.', undefined]);
  assert.ok(alive(daemon));
  await soon(other.shutdown(), 'the last shutdown');
  assert.ok(!alive(daemon), 'it is gone when the last is');
});

test('a provider of a given server ends no daemon', linux, async () => {
  const codex = createCodex({ codex: stage.codex, thread: { cwd: stage.project } });
  await stage.push(reply('a call', text('Yes.')));
  await soon(generateText({ model: codex(), prompt: 'a call' }), 'a call');
  const [daemon] = daemons();
  await createCodex({ codex: stage.codex, server: { url: 'http://127.0.0.1:9', token: 'x' } }).shutdown();
  assert.ok(alive(daemon));
  await codex.shutdown();
  assert.ok(!alive(daemon));
});

test('a task of codexRun is finished, and its daemon ends with the next shutdown', linux, async () => {
  const tool = codexRun({ codex: stage.codex, cwd: stage.project });
  await stage.push(reply('a task', text('Half, '), gate('a task'), text('whole.')));
  const task = all(tool.execute({ task: 'a task' }));
  await stage.reached('a task');
  const [daemon] = daemons();
  const codex = stage.provider();
  await soon(codex.shutdown(), 'a shutdown');
  await stage.open('a task');
  const last = (await soon(task, 'the task')).at(-1);
  assert.deepEqual([last.status, last.text], ['done', 'whole.']);
  assert.ok(alive(daemon), 'it waits for the next task');
  await soon(codex.shutdown(), 'the next shutdown');
  assert.ok(!alive(daemon));
});

test('however often the package is loaded, one daemon serves the process', linux, async () => {
  const again = createRequire(import.meta.url)('@bindery/ai-sdk');
  assert.notEqual(again.createCodex, createCodex, 'it is another copy');
  const providers = [createCodex, again.createCodex].map((make) => make({ codex: stage.codex, thread: { cwd: stage.project } }));
  for (const codex of providers) {
    await stage.push(reply('which copy', text('Any.')));
    assert.equal((await soon(generateText({ model: codex(), prompt: 'which copy' }), 'a call')).text, 'Any.');
  }
  assert.equal(daemons().length, 1);
  for (const codex of providers) await soon(codex.shutdown(), 'a shutdown');
  assert.deepEqual(daemons(), []);
});

/** A provider whose daemon is this shell script, and a folder for it. */
function scripted(script) {
  const folder = mkdtempSync(join(tmpdir(), 'bindery-'));
  const program = join(folder, 'bindery');
  writeFileSync(program, `#!/bin/sh\n${script(folder)}\n`, { mode: 0o755 });
  const codex = createCodex({ bindery: program });
  const end = async () => {
    await soon(codex.shutdown(), 'the shutdown', 5_000);
    rmSync(folder, { recursive: true });
  };
  return { codex, folder, end };
}

test('who stops waiting for a daemon that does not start is let go at once', linux, async () => {
  // It ends with its standard input, as the real one does.
  const { codex, folder, end } = scripted((place) => `touch '${place}/started'\nexec cat > /dev/null`);
  const abort = new AbortController();
  const call = generateText({ model: codex(), prompt: 'x', maxRetries: 0, abortSignal: abort.signal });
  call.catch(() => undefined);
  await until(() => existsSync(join(folder, 'started')), 'it was started');
  abort.abort(new Error('enough'));
  await assert.rejects(soon(call, 'the end', 5_000), /enough|abort/i);
  await end();
});

test('a daemon that cut an answer and lives is asked again', linux, async () => {
  const standIn = fileURLToPath(new URL('./support/daemon.mjs', import.meta.url));
  const { codex, end } = scripted(() => `exec '${process.execPath}' '${standIn}'`);
  const told = [];
  for (let call = 0; call < 3; call += 1) {
    const { fullStream } = streamText({ model: codex(), prompt: 'who', maxRetries: 0, onError: () => undefined });
    told.push(await heard({ parts: all(fullStream) }, 'a call'));
  }
  const [[said]] = told;
  assert.match(said, /^I am \d+\.$/);
  assert.deepEqual(told, [[said, 'stream_cut'], [said, undefined], [said, undefined]]);
  await end();
});

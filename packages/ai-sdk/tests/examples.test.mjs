// Every example runs as its first line says.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'node:test';

import { added, call, exec, first, patch, reply, soon, startStage, text, then } from './support/stage.mjs';

const stage = await startStage();

/** Runs an example in the project, answers what it asks, and gives what it printed. */
async function run(name, answer = '') {
  const path = fileURLToPath(new URL(`../examples/${name}.mjs`, import.meta.url));
  const env = { ...process.env, BINDERY_CODEX: stage.codex };
  const child = spawn(process.execPath, [path], { cwd: stage.project, env, stdio: ['pipe', 'pipe', 'pipe'] });
  let [said, errors] = ['', ''];
  child.stdout.on('data', (data) => {
    said += data;
    if (said.includes('[y/N] ')) child.stdin.write(answer);
  });
  child.stderr.on('data', (data) => (errors += data));
  const code = await soon(new Promise((resolve) => child.once('close', resolve)), name);
  assert.equal(code, 0, errors);
  return said;
}

test('generate', async () => {
  await stage.push(reply('What is this project about', text('It is a small project.')));
  assert.match(await run('generate'), /^It is a small project\.\n\d+ tokens/);
});

test('stream', async () => {
  await stage.push(
    first('List the files', exec('ls', 'e1')), then('List the files', text('A README and sources.')),
  );
  assert.match(await run('stream'), /\[codex_command_execution\] .*ls[^]*A README and sources\./);
});

test('tools', async () => {
  await stage.push(
    first('How many apples', call('inStock', { fruit: 'apples' }, 'e2'), call('inStock', { fruit: 'pears' }, 'e3')),
    then('How many apples', text('12 and 3.')),
  );
  assert.equal(await run('tools'), '12 and 3.\n');
});

test('approvals', async () => {
  await stage.push(
    first('Create a file hello.txt', patch(added('hello.txt', 'hello'), 'e4')),
    then('Create a file hello.txt', text('There it is.')),
  );
  assert.match(await run('approvals', 'y\n'), /There it is\./);
  assert.ok(existsSync(`${stage.project}/hello.txt`));
});

test('threads', async () => {
  await stage.push(
    reply('Remember the number', text('Seven.')), reply('Which number was it', text('It was seven.')),
    reply('And twice that', text('Fourteen.')),
  );
  assert.equal(await run('threads'), 'Seven.\nIt was seven.\nFourteen.\n');
});

test('structured output', async () => {
  await stage.push(reply('Which languages', text('{"languages":["Rust"],"main":"Rust"}')));
  assert.equal(await run('structured-output'), 'Rust of Rust\n');
});

test('images', async () => {
  await stage.push(reply('What is in this picture', text('One red pixel.')));
  assert.equal(await run('images'), 'One red pixel.\n');
});

test('codexRun', async () => {
  await stage.push(
    first('Have a note written', call('worker', { task: 'Write NOTES.md.' }, 'e5')),
    first('Write NOTES.md', patch(added('NOTES.md', 'noted'), 'e6')),
    then('Write NOTES.md', text('Written.')),
    then('Have a note written', text('It is written.')),
  );
  assert.equal(await run('codex-run'), 'It is written.\n');
  assert.equal(readFileSync(`${stage.project}/NOTES.md`, 'utf8'), 'noted\n');
});

test('stdout-mapper', async () => {
  await stage.push(reply('Say hello in one short sentence', text('Hello there.')));
  const events = (await run('stdout-mapper')).trim().split('\n').map((line) => JSON.parse(line));
  assert.equal(events[0].type, 'init');
  assert.ok(events.some(({ type, content }) => type === 'message' && content === 'Hello there.'), JSON.stringify(events));
  assert.deepEqual(events.at(-1), { type: 'result', status: 'success', reason: 'completed', exit_code: 0 });
});

// An empty project with both packages installed, and nobody who says where the program is.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import test from 'node:test';

import { generateText } from 'ai';

import { reply, soon, startStage, text } from '../support/stage.mjs';

const stage = await startStage();
const require = createRequire(import.meta.url);
const name = `@bindery/bin-${process.platform}-${process.arch}`;

test('the package is for this platform and of the same version', () => {
  const [platform, provider] = [name, '@bindery/ai-sdk'].map((one) => require(`${one}/package.json`));
  assert.deepEqual([platform.os, platform.cpu, platform.version], [[process.platform], [process.arch], provider.version]);
  assert.equal(provider.optionalDependencies[name], platform.version);
  assert.equal(process.env.BINDERY_BIN, undefined);
});

test('a call works', async () => {
  await stage.push(reply('out of the box', text('It works.')));
  const result = await soon(generateText({ model: stage.provider()(), prompt: 'out of the box' }), 'a call');
  assert.equal(result.text, 'It works.');
});

test('the program is the one of the package', { skip: process.platform !== 'linux' }, () => {
  const program = join(dirname(require.resolve(`${name}/package.json`)), 'bindery');
  const children = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/exe`) === program;
    } catch {
      return false;
    }
  });
  assert.ok(children.length > 0, `${program} runs`);
});

test('the program can be run by its name', () => {
  const npx = process.platform === 'win32' ? 'bindery.cmd' : 'bindery';
  const told = execFileSync(join('node_modules', '.bin', npx), ['--version'], { shell: process.platform === 'win32' });
  assert.match(String(told), /^bindery \d/);
});

test('CommonJS finds it, too', async () => {
  const { createCodex } = require('@bindery/ai-sdk');
  await stage.push(reply('as it was', text('Still works.')));
  const codex = createCodex({ codex: stage.codex, thread: { cwd: stage.project } });
  const result = await soon(generateText({ model: codex(), prompt: 'as it was' }), 'a call');
  assert.equal(result.text, 'Still works.');
  await codex.shutdown();
});

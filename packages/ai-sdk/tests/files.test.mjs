// Files out: images that Codex generates.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { after } from 'node:test';

import { generateText, streamText } from 'ai';
import { createCodex } from '@bindery/ai-sdk';

import { all, soon } from './support/stage.mjs';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==';
const folder = await mkdtemp(join(tmpdir(), 'bindery-files-'));
const program = join(folder, 'codex');
const standIn = fileURLToPath(new URL('./support/app-server.mjs', import.meta.url));
await writeFile(program, `#!/bin/sh\nexec ${JSON.stringify(process.execPath)} ${JSON.stringify(standIn)}\n`, { mode: 0o755 });
process.env.FAKE_ITEMS = JSON.stringify([
  { type: 'imageGeneration', id: 'ig1', status: 'completed', revisedPrompt: 'a dot', result: PIXEL },
  { type: 'agentMessage', id: 'm1', text: 'Drawn.' },
]);
const codex = createCodex({ codex: program });
after(async () => {
  await codex.shutdown();
  await rm(folder, { recursive: true });
});
const skip = process.platform === 'win32' && 'the stand-in is a shell script';

test('an image that Codex generates is a file, and the tool that made it is shown', { skip }, async () => {
  const result = await soon(generateText({ model: codex(), prompt: 'draw' }), 'an image');
  assert.equal(result.text, 'Drawn.');
  assert.deepEqual(result.files.map(({ mediaType, base64 }) => [mediaType, base64]), [['image/png', PIXEL]]);
  const made = result.content.find((part) => part.type === 'tool-call');
  assert.deepEqual([made.toolName, made.dynamic, made.providerExecuted], ['codex_image_generation', true, true]);
});

test('streams tell it, too', { skip }, async () => {
  const result = streamText({ model: codex(), prompt: 'draw' });
  const parts = await soon(all(result.fullStream), 'an image');
  const { file } = parts.find((part) => part.type === 'file');
  assert.deepEqual([file.mediaType, Buffer.from(file.uint8Array).toString('base64')], ['image/png', PIXEL]);
  assert.equal(parts.at(-1).finishReason, 'stop');
});

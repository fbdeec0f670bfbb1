// A server whose files were gathered by reading its code, as Next.js does for `output: 'standalone'`, has the program.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, linkSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { after } from 'node:test';
import { promisify } from 'node:util';

import { nodeFileTrace } from '@vercel/nft';

import { soon, startStage } from '../support/stage.mjs';

const stage = await startStage();
const base = process.cwd();
// Beside the app: its packages are out of sight, and files can be linked instead of copied.
const place = mkdtempSync(join(dirname(base), 'traced-'));
after(() => rmSync(place, { recursive: true }));

const BODY = `
const codex = createCodex({ codex: ${JSON.stringify(stage.codex)} });
codex.listModels().then(
  async (models) => (console.log(models.length > 0), await codex.shutdown()),
  (error) => console.log(error.code, error.message),
);
`;
const SERVERS = {
  'traced.mjs': `import { createCodex } from '@bindery/ai-sdk';\n${BODY}`,
  'traced.cjs': `const { createCodex } = require('@bindery/ai-sdk');\n${BODY}`,
};

/** Writes a server, gathers its files into a folder of their own, and gives that. */
async function traced(name, isKept = () => true) {
  writeFileSync(join(base, name), SERVERS[name]);
  const { fileList } = await nodeFileTrace([join(base, name)], { base });
  const folder = mkdtempSync(join(place, 'server-'));
  for (const file of [...fileList].filter(isKept)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    if (statSync(join(base, file)).isFile()) linkSync(join(base, file), join(folder, file));
  }
  rmSync(join(base, name));
  return folder;
}

async function said(folder, name) {
  const { stdout } = await soon(promisify(execFile)(process.execPath, [name], { cwd: folder }), name);
  return stdout.trim();
}

for (const name of Object.keys(SERVERS)) {
  test(`${name}: the gathered files are enough`, async () => {
    assert.equal(await said(await traced(name), name), 'true');
  });
}

test('where the program was left behind, the error says how to bring it along', async () => {
  const folder = await traced('traced.cjs', (file) => !file.includes('@bindery/bin-'));
  const told = await said(folder, 'traced.cjs');
  assert.match(told, /^binary_not_found .*not found[^]*serverExternalPackages[^]*outputFileTracingIncludes/);
});

test('a server that was bundled finds it beside the app', async () => {
  const folder = await traced('traced.mjs');
  const own = join(folder, 'node_modules/@bindery/ai-sdk');
  // What a bundler makes of it: our code elsewhere, with nothing beside it.
  cpSync(own, join(place, 'elsewhere/node_modules/@bindery/ai-sdk'), { recursive: true });
  writeFileSync(join(place, 'elsewhere/server.mjs'), SERVERS['traced.mjs']);
  const { stdout } = await promisify(execFile)(process.execPath, [join(place, 'elsewhere/server.mjs')], { cwd: folder });
  assert.equal(stdout.trim(), 'true');
});

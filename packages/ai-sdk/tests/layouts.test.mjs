// The specification is that of the `ai` which the calling package imports, however packages lie beside each other.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { after } from 'node:test';

const require = createRequire(import.meta.url);
const packed = dirname(require.resolve('@bindery/ai-sdk/package.json'));
const contract = dirname(createRequire(join(packed, 'package.json')).resolve('@ai-sdk/provider/package.json'));
const place = realpathSync(mkdtempSync(join(tmpdir(), 'bindery-layouts-')));
after(() => rmSync(place, { recursive: true }));

/** Writes a tree: texts are files, functions make what lies there. */
function lay(folder, tree) {
  for (const [name, what] of Object.entries(tree)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    if (typeof what === 'string') writeFileSync(path, what);
    else what(path);
  }
  return folder;
}

/** A stand-in for `ai` of a major: its version, and a registry that asks a provider for a model. */
const ai = (major) => (path) =>
  lay(path, {
    'package.json': JSON.stringify({ name: 'ai', version: `${major}.0.1`, main: './index.js', exports: { '.': './index.js', './package.json': './package.json' } }),
    'index.js': 'exports.resolved = (provider) => provider.languageModel("m").specificationVersion;',
  });
const bindery = (path) => cpSync(packed, path, { recursive: true, filter: (file) => !file.slice(packed.length).includes('node_modules') });
const provider = (path) => cpSync(contract, path, { recursive: true, dereference: true });
const link = (target) => (path) => symlinkSync(join(dirname(path), target), path, 'junction');

const SAYS = 'import { codex, createCodex } from "@bindery/ai-sdk";\nexport const said = () => [codex().specificationVersion, createCodex().languageModel("m").specificationVersion].join();\n';
const RUN = 'import { said } from "./says.mjs";\nconsole.log(said());\n';
const REQUIRES = 'const { codex } = require("@bindery/ai-sdk");\nconsole.log(codex("m").specificationVersion);\n';
const app = { 'says.mjs': SAYS, 'run.mjs': RUN, 'run.cjs': REQUIRES };

function under(folder, tree) {
  return Object.fromEntries(Object.entries(tree).map(([name, what]) => [`${folder}/${name}`, what]));
}

function run(file, cwd = dirname(file)) {
  return execFileSync(process.execPath, [file], { cwd, encoding: 'utf8' }).trim();
}

const installed = (major) => ({
  'node_modules/ai': ai(major), 'node_modules/@bindery/ai-sdk': bindery, 'node_modules/@ai-sdk/provider': provider,
});

for (const [major, want] of [[6, 'v3'], [7, 'v4'], [8, 'v4']]) {
  test(`one app with ai@${major}, from wherever it is started`, () => {
    const root = lay(join(place, `flat-${major}`), { ...installed(major), ...app });
    const other = lay(join(place, `beside-${major}`), { 'node_modules/ai': ai(major === 6 ? 7 : 6), 'package.json': '{}' });
    for (const cwd of [root, other, tmpdir()]) {
      assert.equal(run(join(root, 'run.mjs'), cwd), `${want},${want}`);
      assert.equal(run(join(root, 'run.cjs'), cwd), want);
    }
  });
}

test('packages of one workspace share a copy and have each their own `ai`', () => {
  const root = lay(join(place, 'workspace'), {
    ...installed(7),
    ...under('apps/old', { ...app, 'node_modules/ai': ai(6) }),
    ...under('apps/new', app),
    'both.mjs': 'import { said as a } from "./apps/old/says.mjs";\nimport { said as b } from "./apps/new/says.mjs";\nconsole.log(a(), b(), a());\n',
  });
  for (const cwd of [root, join(root, 'apps/new'), join(root, 'apps/old')]) {
    assert.equal(run(join(root, 'apps/old/run.mjs'), cwd), 'v3,v3');
    assert.equal(run(join(root, 'apps/old/run.cjs'), cwd), 'v3');
    assert.equal(run(join(root, 'apps/new/run.mjs'), cwd), 'v4,v4');
    assert.equal(run(join(root, 'both.mjs'), cwd), 'v3,v3 v4,v4 v3,v3');
  }
});

test('a store of linked packages, as pnpm lays it out', () => {
  const store = 'node_modules/.pnpm';
  const root = lay(join(place, 'linked'), {
    [`${store}/ai@6/node_modules/ai`]: ai(6),
    [`${store}/ai@7/node_modules/ai`]: ai(7),
    [`${store}/p/node_modules/@ai-sdk/provider`]: provider,
    ...Object.fromEntries([6, 7].flatMap((major) => {
      const home = `${store}/@bindery+ai-sdk_ai@${major}/node_modules`;
      return [
        [`${home}/@bindery/ai-sdk`, bindery],
        [`${home}/ai`, link(`../../ai@${major}/node_modules/ai`)],
        [`${home}/@ai-sdk/provider`, link(`../../../p/node_modules/@ai-sdk/provider`)],
        [`app${major}/node_modules/@bindery/ai-sdk`, link(`../../../${home}/@bindery/ai-sdk`)],
        [`app${major}/node_modules/ai`, link(`../../${store}/ai@${major}/node_modules/ai`)],
        ...Object.entries(under(`app${major}`, app)),
      ];
    })),
  });
  for (const cwd of [join(root, 'app6'), join(root, 'app7')]) {
    assert.equal(run(join(root, 'app6/run.mjs'), cwd), 'v3,v3');
    assert.equal(run(join(root, 'app7/run.mjs'), cwd), 'v4,v4');
  }
});

test('a caller without an `ai` has that beside the provider; the SDK itself is its own', () => {
  const root = lay(join(place, 'elsewhere'), {
    ...under('lib', { ...installed(6), 'index.mjs': 'export { codex } from "@bindery/ai-sdk";\n' }),
    ...under('app', {
      'run.mjs': 'import { codex } from "../lib/index.mjs";\nconsole.log(codex().specificationVersion);\n',
      'node_modules/ai7': ai(7),
    }),
    ...under('sdk', { 'node_modules/ai': ai(7), 'index.mjs': 'export { resolved } from "ai";\n' }),
    'registry.mjs': 'import { codex } from "./lib/index.mjs";\nimport { resolved } from "./sdk/index.mjs";\nconsole.log(resolved(codex));\n',
  });
  assert.equal(run(join(root, 'app/run.mjs')), 'v3');
  assert.equal(run(join(root, 'registry.mjs')), 'v4');
});

test('the option decides, and nothing of the process is left changed', () => {
  const root = lay(join(place, 'option'), {
    ...installed(7),
    'run.mjs': [
      'import { createCodex } from "@bindery/ai-sdk";',
      'Error.stackTraceLimit = 0; const before = Error.prepareStackTrace;',
      'const told = [createCodex({ specification: "v3" })().specificationVersion, createCodex()("m", { specification: "v3" }).specificationVersion, createCodex()().specificationVersion];',
      'console.log(told.join(), Error.stackTraceLimit, Error.prepareStackTrace === before);',
    ].join('\n'),
  });
  assert.equal(run(join(root, 'run.mjs')), 'v3,v3,v4 0 true');
});

// Builds dist/esm and dist/cjs with their types.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { build } from 'esbuild';

const require = createRequire(import.meta.url);
const common = { entryPoints: ['src/index.ts', 'src/stdout-mapper.ts', 'src/codex-cli.ts'], bundle: true, packages: 'external', platform: 'node', target: 'node20' };

rmSync('dist', { recursive: true, force: true });
await build({ ...common, format: 'esm', outdir: 'dist/esm' });
await build({
  ...common,
  format: 'cjs',
  outdir: 'dist/cjs',
  // CommonJS has no `import.meta`; its own word for the place is `__filename`.
  define: { 'import.meta.url': '__filename' },
});
bringAlong('dist/cjs/index.js');
bringAlong('dist/cjs/codex-cli.js');
const tsc = require.resolve('typescript/bin/tsc');
execFileSync(process.execPath, [tsc, '--emitDeclarationOnly', '--outDir', 'dist/types'], { stdio: 'inherit' });
for (const kind of ['esm', 'cjs']) cpSync('dist/types', `dist/${kind}`, { recursive: true });
rmSync('dist/types', { recursive: true });
mkdirSync('dist/cjs', { recursive: true });
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n');

/** Of CommonJS, tools that gather a deployment's files understand `require` under its own name alone. */
function bringAlong(file) {
  let count = 0;
  const text = readFileSync(file, 'utf8').replace(/\bload\w*\((?="@bindery\/bin-)/g, () => ((count += 1), 'require('));
  if (count !== 6) throw new Error(`${file} names ${count} platform packages`);
  writeFileSync(file, text);
}

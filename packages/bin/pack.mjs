// Packs a built `bindery` as the package of one platform, which npm installs beside @bindery/ai-sdk.
//
//     node pack.mjs BINARY OUT [--platform=NAME] [--arch=NAME] [--libc=NAME]
//
// OUT/package is written anew; the tarball's path is printed. By default the platform is this one. A binary that
// needs a certain C library says which (`glibc`), so that it is not installed where it cannot run.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const word = { type: 'string' };
const { values, positionals } = parseArgs({ allowPositionals: true, options: { platform: word, arch: word, libc: word } });
const [binary, out] = positionals;
const { platform = process.platform, arch = process.arch, libc } = values;
if (out === undefined) throw new Error('usage: node pack.mjs BINARY OUT [--platform=NAME] [--arch=NAME] [--libc=NAME]');

const provider = JSON.parse(readFileSync(new URL('../ai-sdk/package.json', import.meta.url), 'utf8'));
const name = `@bindery/bin-${platform}-${arch}`;
const program = platform === 'win32' ? 'bindery.exe' : 'bindery';
if (provider.optionalDependencies[name] !== provider.version) {
  throw new Error(`@bindery/ai-sdk ${provider.version} does not list ${name} of the same version`);
}

const folder = join(out, 'package');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
copyFileSync(binary, join(folder, program));
chmodSync(join(folder, program), 0o755);
const manifest = {
  name,
  version: provider.version,
  description: `The program \`bindery\` for ${platform} on ${arch}`,
  license: provider.license,
  type: 'commonjs',
  os: [platform],
  cpu: [arch],
  ...(libc === undefined ? {} : { libc: [libc] }),
  main: './index.js',
  bin: { bindery: program },
  files: [program, 'index.js'],
  // The program is run from where it lies, never out of an archive.
  preferUnplugged: true,
};
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
// Where the program is, in words that tools which gather a deployment's files understand.
writeFileSync(
  join(folder, 'index.js'),
  `const { join } = require('node:path');\n\nmodule.exports = join(__dirname, '${program}');\n`,
);
writeFileSync(
  join(folder, 'README.md'),
  `# ${name}\n\nThe program \`bindery\` for one platform. Install \`@bindery/ai-sdk\`, which brings the right one.\n`,
);

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const args = ['pack', '--json', '--loglevel=error', '--pack-destination', '..'];
const told = execFileSync(npm, args, { cwd: folder, shell: process.platform === 'win32', stdio: ['ignore', 'pipe', 'inherit'] });
console.log(join(out, JSON.parse(told)[0].filename));

// Packs the package as it would be published, and lets publint and attw look at the tarball.

import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';

const { version, optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
for (const [name, wanted] of Object.entries(optionalDependencies)) {
  if (wanted !== version) throw new Error(`${name} must be of the version ${version}, not ${wanted}`);
}
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const options = { shell: process.platform === 'win32', stdio: ['ignore', 'pipe', 'inherit'] };
const [{ filename }] = JSON.parse(execFileSync(npm, ['pack', '--json', '--loglevel=error'], options));
const tarball = 'bindery-ai-sdk.tgz';
renameSync(filename, tarball);
for (const [program, ...args] of [
  ['publint', 'run', '--strict', tarball],
  ['attw', '--format', 'ascii', '--no-emoji', tarball],
]) {
  execFileSync(join('node_modules', '.bin', program), args, { ...options, stdio: 'inherit' });
}

// Packs the package as it would be published, and lets publint and attw look at the tarball.

import { execFileSync } from 'node:child_process';
import { renameSync } from 'node:fs';
import { join } from 'node:path';

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

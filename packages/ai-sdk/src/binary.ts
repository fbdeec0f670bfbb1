// Finds the program `bindery`.

import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';

import { BinderyError } from './errors.js';

const PACKAGE = `@bindery/bin-${process.platform}-${process.arch}`;
const EXE = process.platform === 'win32' ? '.exe' : '';

/** The option, `BINDERY_BIN`, the platform package, `PATH`, in this order. */
export function findBindery(option: string | undefined): string {
  const named = option ?? process.env['BINDERY_BIN'];
  if (named !== undefined && named !== '') {
    const given = [named, named + EXE].find(runs);
    if (given !== undefined) return given;
    const which = option === undefined ? '`BINDERY_BIN`' : 'the setting `bindery`';
    throw new BinderyError(`${which} names no program: ${named}`, 'binary_not_found');
  }
  const found = [...packaged(), ...onPath()].find(runs);
  if (found !== undefined) return found;
  throw new BinderyError(
    'the program `bindery` was not found',
    'binary_not_found',
    `The package ${PACKAGE} brings it; npm leaves it out with --omit=optional, and there is none for some ` +
      'platforms. Where a server was bundled or traced (Next.js with `output: "standalone"`), it has to be brought along: ' +
      'put @bindery/ai-sdk into `serverExternalPackages`, and if that is not enough ' +
      '`"./node_modules/@bindery/bin-*/**"` into `outputFileTracingIncludes`. Or build it with `cargo install --path crates/cli` in a clone of Bindery, then put it on PATH, ' +
      'or name it with BINDERY_BIN or the setting `bindery`.',
  );
}

const load = createRequire(import.meta.url);

/** Beside this package, or, where an app was bundled into one file, beside the app. */
function packaged(): string[] {
  return [besidePackage, besideApp].flatMap((find) => {
    try {
      return find() ?? [];
    } catch {
      return [];
    }
  });
}

/**
 * Each package is written out, because tools that gather the files of a deployment (Next.js, Vercel, Netlify) run no
 * code: what they read here they bring along, where it is installed.
 */
function besidePackage(): string | undefined {
  try {
    switch (`${process.platform}-${process.arch}`) {
      case 'darwin-arm64':
        return load('@bindery/bin-darwin-arm64') as string;
      case 'darwin-x64':
        return load('@bindery/bin-darwin-x64') as string;
      case 'linux-arm64':
        return load('@bindery/bin-linux-arm64') as string;
      case 'linux-x64':
        return load('@bindery/bin-linux-x64') as string;
      case 'win32-arm64':
        return load('@bindery/bin-win32-arm64') as string;
      case 'win32-x64':
        return load('@bindery/bin-win32-x64') as string;
    }
  } catch {
    // It is not installed.
  }
  return undefined;
}

function besideApp(): string {
  const manifest = createRequire(join(process.cwd(), 'package.json')).resolve(`${PACKAGE}/package.json`);
  return join(dirname(manifest), `bindery${EXE}`);
}

function onPath(): string[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, `bindery${EXE}`));
}

function runs(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

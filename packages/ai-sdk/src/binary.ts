// Finds the program `bindery`.

import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';

import { BinderyError } from './errors.js';
import { here } from './here.js';

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
      'platforms. Or build it with `cargo install --path crates/cli` in a clone of Bindery, then put it on PATH, ' +
      'or name it with BINDERY_BIN or the setting `bindery`.',
  );
}

/** Beside this package, or, where an app was bundled into one file, beside the app. */
function packaged(): string[] {
  return [here, join(process.cwd(), 'package.json')].flatMap((place) => {
    try {
      return [join(dirname(createRequire(place).resolve(`${PACKAGE}/package.json`)), `bindery${EXE}`)];
    } catch {
      return [];
    }
  });
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

// Which `ai` the caller has decides which specification we speak.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { here } from './here.js';

/**
 * V4 for ai@7 and later, V3 for ai@6 and where no `ai` is found: every SDK takes V3. One copy of this package may serve
 * packages with different ones, so it is the `ai` that the file which calls us would import; where that has none, the one
 * beside this package, and where an app was bundled, the one of the folder that it runs in.
 */
export function installedSpecification(): 'v3' | 'v4' {
  for (const place of [callingFile(), here, join(process.cwd(), 'package.json'), process.argv[1]]) {
    const major = place === undefined ? undefined : majorSeenFrom(place);
    if (major !== undefined) return major >= 7 ? 'v4' : 'v3';
  }
  return 'v3';
}

const seen = new Map<string, number | undefined>();

function majorSeenFrom(place: string): number | undefined {
  if (!seen.has(place)) seen.set(place, resolvedFrom(place));
  return seen.get(place);
}

function resolvedFrom(place: string): number | undefined {
  try {
    const { version } = createRequire(place)('ai/package.json') as { version: string };
    const major = Number.parseInt(version, 10);
    return Number.isNaN(major) ? undefined : major;
  } catch {
    return undefined;
  }
}

const FRAMES = 30;

/** The first file on the stack that is none of ours. */
function callingFile(): string | undefined {
  const own = dirname(pathOf(here));
  const files = stackFiles().filter((file) => file !== '' && !file.startsWith('node:'));
  return files.map(pathOf).find((file) => dirname(file) !== own);
}

/** The files on the stack. How the process writes its stacks is left as it was. */
function stackFiles(): string[] {
  const kept = Error as { prepareStackTrace?: unknown; stackTraceLimit?: number };
  const { prepareStackTrace, stackTraceLimit } = kept;
  try {
    kept.stackTraceLimit = FRAMES;
    kept.prepareStackTrace = (_: unknown, frames: NodeJS.CallSite[]) => frames.map((frame) => frame.getFileName() ?? '');
    const files = new Error().stack as unknown;
    return Array.isArray(files) ? (files as string[]) : [];
  } catch {
    return [];
  } finally {
    if (prepareStackTrace === undefined) delete kept.prepareStackTrace;
    else kept.prepareStackTrace = prepareStackTrace;
    if (stackTraceLimit !== undefined) kept.stackTraceLimit = stackTraceLimit;
  }
}

function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(file) : file;
}

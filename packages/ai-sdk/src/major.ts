// Which `ai` is installed decides which specification we speak.

import { createRequire } from 'node:module';
import { join } from 'node:path';

import { here } from './here.js';

/** V4 for ai@7 and later, V3 for ai@6 and where no `ai` is found: every SDK takes V3. */
export function installedSpecification(): 'v3' | 'v4' {
  const places = [join(process.cwd(), 'package.json'), process.argv[1], here];
  for (const place of places) {
    const major = place === undefined ? undefined : majorSeenFrom(place);
    if (major !== undefined) return major >= 7 ? 'v4' : 'v3';
  }
  return 'v3';
}

function majorSeenFrom(place: string): number | undefined {
  try {
    const { version } = createRequire(place)('ai/package.json') as { version: string };
    const major = Number.parseInt(version, 10);
    return Number.isNaN(major) ? undefined : major;
  } catch {
    return undefined;
  }
}

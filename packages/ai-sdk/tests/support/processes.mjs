// The processes under this one, as Linux tells of them.

import { readdirSync, readFileSync } from 'node:fs';

/** Those below us that run a program with this as its first argument. */
export function programs(program, argument) {
  return descendants(process.pid).filter((pid) => commandOf(pid).startsWith(`${program}\0${argument}\0`));
}

/** All processes below one. */
export function descendants(pid) {
  const parents = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map((name) => [Number(name), parentOf(name)]);
  const found = [];
  const visit = (parent) => {
    for (const [child, of] of parents) {
      if (of !== parent || found.includes(child)) continue;
      found.push(child);
      visit(child);
    }
  };
  visit(pid);
  return found;
}

function parentOf(pid) {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  } catch {
    return undefined;
  }
}

export function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

export function alive(pid) {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

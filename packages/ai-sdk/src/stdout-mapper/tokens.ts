// Tokens of a turn, from totals that Codex counts over the whole thread.

import { objectOf } from './events.js';
import { integer, isObject, Members, type Raw } from './json.js';
import type { StdoutMapperOptions } from './options.js';

const NAMES = [
  'input_tokens', 'cached_input_tokens', 'cache_write_input_tokens', 'output_tokens', 'reasoning_output_tokens',
] as const;

export type Tokens = Record<(typeof NAMES)[number], bigint>;

const MOST = 2n ** 64n - 1n;

/** Numbers that cannot be read are no reason to lose the end of a turn. */
export function tokensOf(raw: Raw | undefined): Tokens | undefined {
  if (raw === undefined || !isObject(raw)) return undefined;
  const fields = new Members(raw);
  const counts = NAMES.map((name) => {
    const count = fields.get(name);
    if (count === undefined) return 0n;
    if (fields.again(name) !== undefined || !/^\d+$/.test(count)) return undefined;
    return BigInt(count);
  });
  if (counts.some((count) => count === undefined || count > MOST)) return undefined;
  return each((at) => counts[at] ?? 0n);
}

/** Tokens of one response (0.25 and older). */
export function tokensOfResponse(fields: Members): Tokens {
  return each((at, name) => {
    const count = name === 'cache_write_input_tokens' ? undefined : integer(fields.get(name));
    return count === undefined || count < 0n ? 0n : count;
  });
}

export function plus(a: Tokens, b: Tokens): Tokens {
  return each((_, name) => (a[name] + b[name] > MOST ? MOST : a[name] + b[name]));
}

export function written(tokens: Tokens): Raw {
  return objectOf(NAMES.map((name) => [name, tokens[name].toString()]));
}

export const NONE: Tokens = each(() => 0n);

/** The thread's total so far. */
export class Totals {
  /** None where it is not known. */
  private before: Tokens | undefined;

  constructor(baseline: StdoutMapperOptions['baseline']) {
    if (baseline === 'unknown') this.before = undefined;
    else this.before = each((_, name) => BigInt(Math.max(0, Math.trunc(baseline?.[name] ?? 0))));
  }

  /**
   * Takes the total after a turn; gives the turn's own tokens. 0.58 and older count anew in every process, even in one
   * that resumes. Every turn reads something, so a total that did not grow is one that began again.
   */
  turn(total: Tokens): Tokens | undefined {
    const { before } = this;
    this.before = total;
    if (before === undefined) return undefined;
    if (total.input_tokens <= before.input_tokens) return total;
    return each((_, name) => (total[name] > before[name] ? total[name] - before[name] : 0n));
  }

  /** Takes what a turn used; gives the total after it (0.42 and older tell only that). */
  add(turn: Tokens): Tokens {
    this.before = plus(this.before ?? NONE, turn);
    return this.before;
  }
}

function each(count: (at: number, name: (typeof NAMES)[number]) => bigint): Tokens {
  return Object.fromEntries(NAMES.map((name, at) => [name, count(at, name)])) as Tokens;
}

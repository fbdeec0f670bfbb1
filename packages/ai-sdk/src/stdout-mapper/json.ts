// JSON that is looked into without being changed: values stay the text they were, numbers of any size with them.

/** A JSON value as it stands in its line. */
export type Raw = string;

/** The members of an object, each as its own text; the first of a name counts. */
export class Members {
  private readonly first = new Map<string, Raw>();
  private readonly second = new Map<string, Raw>();

  /** `text` must be good JSON and an object. */
  constructor(text: Raw) {
    for (const [name, value] of membersOf(text)) {
      if (!this.first.has(name)) this.first.set(name, value);
      else this.second.set(name, value);
    }
  }

  get(name: string): Raw | undefined {
    return this.first.get(name);
  }

  /** The last of a name that was given again: `web_search` items have two `id`s. */
  again(name: string): Raw | undefined {
    return this.second.get(name);
  }
}

export function isObject(raw: Raw): boolean {
  return raw.startsWith('{');
}

export function isText(raw: Raw | undefined): raw is Raw {
  return raw?.startsWith('"') === true;
}

/** The text of a JSON string. */
export function decode(token: Raw): string {
  return token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1);
}

export const encode = (text: string): Raw => JSON.stringify(text);

/** JSON `null` is as good as nothing. */
export function some(raw: Raw | undefined): Raw | undefined {
  return raw === 'null' ? undefined : raw;
}

/** A text that may be absent. */
export function text(raw: Raw | undefined): Raw | undefined {
  return isText(raw) ? raw : undefined;
}

/** A text, or another value as its JSON. */
export function shown(raw: Raw): Raw {
  return isText(raw) ? raw : encode(raw);
}

/** A whole number that may be absent. */
export function integer(raw: Raw | undefined): bigint | undefined {
  if (raw === undefined || !/^-?\d+$/.test(raw)) return undefined;
  const value = BigInt(raw);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

function* membersOf(json: string): Generator<[string, Raw]> {
  let at = skipSpace(json, 1);
  while (json[at] !== '}') {
    const nameEnd = endOfString(json, at);
    const name = decode(json.slice(at, nameEnd));
    // Over the colon.
    const start = skipSpace(json, skipSpace(json, nameEnd) + 1);
    const end = endOfValue(json, start);
    yield [name, json.slice(start, end)];
    at = skipSpace(json, end);
    if (json[at] === ',') at = skipSpace(json, at + 1);
  }
}

function skipSpace(json: string, from: number): number {
  let at = from;
  while (at < json.length && ' \t\r\n'.includes(json[at] ?? '')) at += 1;
  return at;
}

/** Where a string ends that begins here, with its quotes. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json[quote - 1 - backslashes] === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}

function endOfValue(json: string, start: number): number {
  switch (json[start]) {
    case '"':
      return endOfString(json, start);
    case '{':
    case '[':
      return endOfBrackets(json, start);
    default: {
      let at = start;
      while (at < json.length && !',}] \t\r\n'.includes(json[at] ?? '')) at += 1;
      return at;
    }
  }
}

const BRACKET = /["[\]{}]/g;

function endOfBrackets(json: string, start: number): number {
  let depth = 0;
  let at = start;
  for (;;) {
    BRACKET.lastIndex = at;
    const found = BRACKET.exec(json);
    if (found === null) return json.length;
    if (found[0] === '"') {
      at = endOfString(json, found.index);
      continue;
    }
    depth += found[0] === '{' || found[0] === '[' ? 1 : -1;
    at = found.index + 1;
    if (depth === 0) return at;
  }
}

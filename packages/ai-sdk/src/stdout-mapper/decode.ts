// One line of `codex exec --json`, in the three vocabularies it has had or was said to have.

import { decode, encode, isObject, isText, Members, shown, some, text, type Raw } from './json.js';

/** A line that was read, or why it could not be. */
export type Decoded =
  | { kind: 'event'; type: string; fields: Members }
  | { kind: 'item'; phase: Phase; item: Members; type: string }
  | { kind: 'config' | 'prompt'; fields: Members }
  | { kind: 'msg'; msg: Members; type: string }
  | { kind: 'unknown'; tag: string; why: string };

export type Phase = 'started' | 'updated' | 'completed';

const TYPES = new Set([
  'thread.started', 'turn.started', 'turn.completed', 'turn.failed', 'error', 'session.created',
  'message.output_text.delta', 'message.output_text.done', 'response.completed',
]);

const PHASES: Record<string, Phase> = {
  'item.started': 'started', 'item.updated': 'updated', 'item.completed': 'completed',
};

/** Why a line is not what it says. */
export class Strange extends Error {}

/** Reads one line. Never throws, never drops. */
export function decodeLine(line: string): Decoded {
  const record = objectOf(line);
  if (typeof record === 'string') return { kind: 'unknown', tag: '', why: record };
  try {
    return ofRecord(record);
  } catch (error) {
    return { kind: 'unknown', tag: tagOf(line), why: (error as Strange).message };
  }
}

/** What a line calls itself, with what it holds. */
export function tagOf(line: string): string {
  const record = new Members(line);
  const inner = record.get('item') ?? record.get('msg');
  const tags = [record.get('type'), inner === undefined ? undefined : new Members(inner).get('type')];
  return tags.filter(isText).map(decode).filter((part) => part !== '').join('/');
}

/** The members of a line; in words, why there are none. */
function objectOf(line: string): Members | string {
  try {
    JSON.parse(line);
  } catch {
    return 'the line is no JSON';
  }
  if (!isObject(line)) return 'the line is no object';
  const record = new Members(line);
  for (const name of ['item', 'msg']) {
    const inner = record.get(name);
    if (inner !== undefined && !isObject(inner)) return `\`${name}\` is no object`;
  }
  return record;
}

function ofRecord(record: Members): Decoded {
  const tag = record.get('type');
  if (tag === undefined) return untagged(record);
  if (!isText(tag)) throw new Strange('`type` is no text');
  const type = decode(tag);
  const phase = Object.hasOwn(PHASES, type) ? PHASES[type] : undefined;
  if (phase !== undefined) {
    const inner = record.get('item');
    if (inner === undefined) throw new Strange('`item` is missing');
    const item = new Members(inner);
    // The first versions with items said `item_type`.
    return { kind: 'item', phase, item, type: decode(needIn(item.get('type') ?? item.get('item_type'), 'item.type')) };
  }
  if (!TYPES.has(type)) throw new Strange('a type of line that is new to us');
  return { kind: 'event', type, fields: record };
}

function untagged(record: Members): Decoded {
  const inner = record.get('msg');
  if (inner !== undefined) {
    const msg = new Members(inner);
    return { kind: 'msg', msg, type: decode(needIn(msg.get('type'), 'msg.type')) };
  }
  if (isText(record.get('prompt'))) return { kind: 'prompt', fields: record };
  if (isText(record.get('model')) && record.get('provider') !== undefined) return { kind: 'config', fields: record };
  throw new Strange('the line has no `type`');
}

/** A text that must be there. */
export function need(fields: Members, name: string): Raw {
  return needIn(fields.get(name), name);
}

function needIn(raw: Raw | undefined, name: string): Raw {
  if (raw === undefined) throw new Strange(`\`${name}\` is missing`);
  if (!isText(raw)) throw new Strange(`\`${name}\` is no text`);
  return raw;
}

/** Any value that must be there. */
export function there(fields: Members, name: string): Raw {
  const raw = fields.get(name);
  if (raw === undefined) throw new Strange(`\`${name}\` is missing`);
  return raw;
}

/** The words of an error; where there are none, the JSON of all that was said. */
export function words(raw: Raw | undefined, whole: string): Raw {
  return text(raw) ?? encode(whole);
}

/** The words of an error that is a text or an object with a `message`; else its JSON, or that of all that was said. */
export function messageIn(error: Raw | undefined, whole: string): Raw {
  const given = some(error);
  if (given === undefined) return encode(whole);
  if (isText(given)) return given;
  return words(isObject(given) ? new Members(given).get('message') : undefined, given);
}

/** A text, or another value as its JSON; `null` is none. */
export function shownIn(fields: Members, name: string): Raw | undefined {
  const raw = some(fields.get(name));
  return raw === undefined ? undefined : shown(raw);
}

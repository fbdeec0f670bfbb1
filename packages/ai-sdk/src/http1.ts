// The answer to a request out of the bytes of its connection (RFC 9112). Node's own client takes a
// millisecond of CPU for a call; all that is wanted of an answer is its status, headers and text.

import { StringDecoder } from 'node:string_decoder';

/** What an answer begins with. */
export interface Head {
  status: number;
  /** By their names in small letters. */
  headers: Record<string, string>;
}

/** Who is told of an answer. */
export interface HeadAndText {
  head(head: Head): void;
  text(text: string): void;
  /** It is complete; whether the connection can carry another one. */
  end(reusable: boolean): void;
}

/** What comes next. */
type State = 'head' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailers' | 'counted' | 'uncounted' | 'over';

/** Bytes of a head, of a line of chunks or of a trailer. */
const LONGEST_LINE = 64 * 1024;

const NOTHING = Buffer.alloc(0);

/** Reads one answer. Throws where it is none. */
export class ResponseFeed {
  readonly #decoder = new StringDecoder('utf8');
  #state: State = 'head';
  #rest: Buffer = NOTHING;
  /** Bytes of the body, or of the chunk, that are to come. */
  #left = 0;
  #reusable = true;

  constructor(readonly told: HeadAndText) {}

  /** Whether nothing of it has come. */
  get untouched(): boolean {
    return this.#state === 'head' && this.#rest.length === 0;
  }

  push(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    while (at < all.length) {
      const next = this.#step(all, at);
      if (next === undefined) break;
      at = next;
    }
    this.#rest = at < all.length ? all.subarray(at) : NOTHING;
    if (this.#rest.length > LONGEST_LINE) throw new Error('the head of an answer or of a chunk is too long');
  }

  /** No more bytes come; whether the answer was complete. */
  close(): boolean {
    if (this.#state === 'uncounted') this.#end(false);
    return this.#state === 'over';
  }

  /** Where to go on; nothing if more bytes are needed first. */
  #step(all: Buffer, at: number): number | undefined {
    switch (this.#state) {
      case 'head':
        return upTo(all, '\r\n\r\n', at, (text) => this.#head(text));
      case 'chunk-size':
        return upTo(all, '\r\n', at, (text) => this.#size(text));
      case 'chunk-end':
        return upTo(all, '\r\n', at, (text) => this.#chunkEnd(text));
      case 'trailers':
        return upTo(all, '\r\n', at, (text) => {
          if (text === '') this.#end(this.#reusable);
        });
      case 'chunk':
      case 'counted':
        return this.#body(all, at);
      case 'uncounted':
        this.#say(all.subarray(at));
        return all.length;
      case 'over':
        throw new Error('there is more than an answer');
    }
  }

  #head(text: string): void {
    const [first = '', ...lines] = text.split('\r\n');
    const status = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(first);
    if (status === null) throw new Error(`this is no answer: ${first.slice(0, 80)}`);
    const code = Number(status[2]);
    // "Go on" and the like come before the answer.
    if (code < 200) return;
    const headers = headersOf(lines);
    this.#reusable = status[1] === '1' && !/\bclose\b/i.test(headers['connection'] ?? '');
    this.told.head({ status: code, headers });
    this.#begin(code, headers);
  }

  #begin(status: number, headers: Record<string, string>): void {
    if (status === 204 || status === 304) return this.#end(this.#reusable);
    if (/\bchunked\s*$/i.test(headers['transfer-encoding'] ?? '')) {
      this.#state = 'chunk-size';
      return;
    }
    const length = headers['content-length'];
    if (length === undefined) {
      this.#state = 'uncounted';
      return;
    }
    if (!/^\d{1,15}$/.test(length)) throw new Error(`this is no length: ${length.slice(0, 80)}`);
    this.#left = Number(length);
    this.#state = 'counted';
    if (this.#left === 0) this.#end(this.#reusable);
  }

  #size(text: string): void {
    const size = /^([0-9a-f]{1,8})\s*(?:;|$)/i.exec(text);
    if (size === null) throw new Error(`this is no length of a chunk: ${text.slice(0, 80)}`);
    this.#left = parseInt(size[1] ?? '', 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
  }

  #chunkEnd(text: string): void {
    if (text !== '') throw new Error('a chunk is longer than it said');
    this.#state = 'chunk-size';
  }

  #body(all: Buffer, at: number): number {
    const end = Math.min(all.length, at + this.#left);
    this.#left -= end - at;
    this.#say(all.subarray(at, end));
    if (this.#left === 0) {
      if (this.#state === 'chunk') this.#state = 'chunk-end';
      else this.#end(this.#reusable);
    }
    return end;
  }

  #say(bytes: Buffer): void {
    const text = this.#decoder.write(bytes);
    if (text !== '') this.told.text(text);
  }

  #end(reusable: boolean): void {
    const text = this.#decoder.end();
    if (text !== '') this.told.text(text);
    this.#state = 'over';
    this.told.end(reusable);
  }
}

/** Takes what stands before a mark; gives where it ends, or nothing if it is not there yet. */
function upTo(all: Buffer, mark: string, at: number, take: (text: string) => void): number | undefined {
  const end = all.indexOf(mark, at, 'latin1');
  if (end < 0) return undefined;
  take(all.toString('latin1', at, end));
  return end + mark.length;
}

function headersOf(lines: string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) throw new Error(`this is no header: ${line.slice(0, 80)}`);
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return headers;
}

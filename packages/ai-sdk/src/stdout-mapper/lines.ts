// Chunks cut into lines: bounded memory, any chunking.

/** How much of an over-long line is kept, and of one that nobody understands shown. */
const HEAD = 4096;

const LIMIT = 16 * 1024 * 1024;

/** One line, without its line feed. */
export interface Line {
  text: string;
  /** The length of the whole line, where only its beginning was kept. */
  tooLong?: number;
}

export class LineSplitter {
  readonly limit: number;
  // The mark at the beginning is taken away with the space around a line.
  private readonly decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  private tail = '';
  /** Bytes of a line that is already too long. */
  private over = 0;

  constructor(limit = LIMIT) {
    this.limit = limit;
  }

  push(chunk: string | Uint8Array): Line[] {
    return this.split(typeof chunk === 'string' ? chunk : this.decoder.decode(chunk, { stream: true }));
  }

  /** Ends the stream: a last line without a line feed still counts. */
  finish(): Line[] {
    const lines = this.split(this.decoder.decode());
    if (this.tail !== '' || this.over > 0) lines.push(this.take(''));
    return lines;
  }

  private split(text: string): Line[] {
    const lines: Line[] = [];
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      lines.push(this.take(text.slice(start, end)));
      start = end + 1;
    }
    this.keep(text.slice(start));
    return lines;
  }

  private keep(piece: string): void {
    if (this.over > 0) {
      this.over += byteLength(piece);
      return;
    }
    this.tail += piece;
    if (isLonger(this.tail, this.limit)) {
      this.over = byteLength(this.tail);
      this.tail = beginning(this.tail);
    }
  }

  private take(piece: string): Line {
    this.keep(piece);
    const { tail: text, over } = this;
    this.tail = '';
    this.over = 0;
    return over > 0 ? { text, tooLong: over } : { text };
  }
}

/** The beginning that is shown of a text, cut between characters. */
export function beginning(text: string): string {
  if (text.length * 3 <= HEAD) return text;
  const bytes = new TextEncoder().encode(text.slice(0, HEAD));
  let end = Math.min(HEAD, bytes.length);
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, end));
}

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** A character takes one to three bytes for each unit of its text. */
function isLonger(text: string, limit: number): boolean {
  if (text.length > limit) return true;
  return text.length * 3 > limit && byteLength(text) > limit;
}

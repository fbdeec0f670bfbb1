// Tool calls: each is told once, and each gets exactly one result.

import type { EventLines } from './events.js';
import { decode, encode, isText, type Raw } from './json.js';
import { statusOf, type State } from './state.js';

/** The most calls that can be open at once; beyond it the oldest is closed. */
const OPEN_LIMIT = 4096;

/** How much of an open command's output is kept (as JSON), for the case that its end never comes. */
const TAIL_LIMIT = 64 * 1024;

/** A call as a line tells it. */
export interface Call {
  id: Raw;
  name: Raw;
  parameters: Raw;
  callId?: Raw | undefined;
}

/** The answer to a call. */
export interface Answer {
  state: State;
  output: Raw;
  exitCode?: bigint | undefined;
  result?: Raw | undefined;
}

interface Open {
  name: Raw;
  /** `tool_use` was given; a search has no input before it is done. */
  told: boolean;
  /** Pieces of output as they came: base64 or a list of numbers. */
  pieces: Raw[];
  length: number;
}

export class Tools {
  private readonly open = new Map<string, Open>();
  /** Calls that were closed without their answer, should it come all the same. */
  private readonly closed = new Set<string>();

  constructor(
    private readonly events: EventLines,
    /** Put before the name of every call. */
    public prefix: string,
  ) {}

  /** The name of an item in this stream. */
  name(id: Raw): Raw {
    return this.prefix === '' ? id : encode(this.prefix + decode(id));
  }

  get isEmpty(): boolean {
    return this.open.size === 0;
  }

  begin(call: Call): void {
    if (this.announce(call.id, call.name, true)) this.tell(call);
    for (const [id, open] of this.open) {
      if (this.open.size <= OPEN_LIMIT) break;
      this.closeOne(id, open, 'incomplete');
    }
  }

  /** A call begins whose input may not yet be known. */
  announce(rawId: Raw, name: Raw, told: boolean): boolean {
    const id = decode(rawId);
    if (this.open.has(id)) return false;
    this.open.set(id, { name, told, pieces: [], length: 0 });
    return true;
  }

  /** A command printed something. */
  output(id: Raw, piece: Raw): void {
    const open = this.open.get(decode(id));
    if (open === undefined || piece.length > TAIL_LIMIT) return;
    open.pieces.push(piece);
    open.length += piece.length;
    while (open.length > TAIL_LIMIT) open.length -= open.pieces.shift()?.length ?? open.length;
  }

  /** A call is answered; one that was never told of is told now. */
  end(call: Call, answer: Answer): void {
    const id = decode(call.id);
    const open = this.open.get(id);
    this.open.delete(id);
    if (open === undefined && this.closed.has(id)) return;
    if (open?.told !== true) this.tell(call);
    this.tellResult(this.name(call.id), call.name, answer);
  }

  /** A call is answered by a line that says nothing else about it. */
  answer(id: Raw, answer: Answer): void {
    const name = this.open.get(decode(id))?.name ?? encode('unknown');
    this.end({ id, name, parameters: '{}' }, answer);
  }

  /** Gives every open call a result, so that none looks as if it still ran. */
  close(state: State): void {
    for (const [id, open] of this.open) this.closeOne(id, open, state);
  }

  /** A new run begins in the same stream; names may come again. */
  forget(): void {
    this.closed.clear();
  }

  private closeOne(id: string, { name, told, pieces }: Open, state: State): void {
    this.open.delete(id);
    const rawId = encode(id);
    if (!told) this.tell({ id: rawId, name, parameters: '{}' });
    this.tellResult(this.name(rawId), name, { state, output: encode(textOf(pieces)) });
    const [oldest] = this.closed;
    if (this.closed.size >= OPEN_LIMIT && oldest !== undefined) this.closed.delete(oldest);
    this.closed.add(id);
  }

  private tell({ id, name, parameters, callId }: Call): void {
    this.events.tell('tool_use', { tool_name: name, tool_id: this.name(id), parameters, call_id: callId });
  }

  private tellResult(id: Raw, name: Raw, { state, output, exitCode, result }: Answer): void {
    this.events.tell('tool_result', {
      tool_id: id,
      tool_name: name,
      status: encode(statusOf(state)),
      output,
      state: encode(state),
      exit_code: exitCode?.toString(),
      result,
    });
  }
}

/** What was printed last. */
function textOf(pieces: Raw[]): string {
  const bytes = Uint8Array.from(pieces.flatMap(bytesOf));
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).replace(/^\ufffd+/, '');
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function bytesOf(piece: Raw): number[] {
  if (isText(piece)) {
    const base64 = piece.slice(1, -1);
    return BASE64.test(base64) ? Array.from(atob(base64), (letter) => letter.charCodeAt(0)) : [];
  }
  const numbers: unknown = JSON.parse(piece);
  const isByte = (number: unknown) => Number.isInteger(number) && (number as number) >= 0 && (number as number) < 256;
  return Array.isArray(numbers) && numbers.every(isByte) ? (numbers as number[]) : [];
}

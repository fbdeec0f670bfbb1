// The events of an answer, told as they come. No promise for each: a call is mostly waiting, and
// what wakes the process for nothing is most of what it costs.

import type { Answer } from './connection.js';
import { BinderyError, parsed } from './errors.js';
import { EventFeed } from './sse.js';

/** What a model makes something of: a part of the answer, or the whole of it. */
export type CallEvent = 'message' | 'generated' | 'failed';

/** The model, which is told of the answer. */
export interface Listener {
  event(event: CallEvent, value: Record<string, unknown>): void;
  /** All that came at once has been told. */
  rest?(): void;
  /** The answer is complete; nothing more is told. */
  end(): void;
  /** It was cut; nothing more is told. */
  cut(error: BinderyError): void;
  /** The caller wants no more of it, for this reason; nothing more is told. */
  abort(reason: unknown): void;
}

/** Who is told of everything else. */
export interface Aside {
  event(event: string, value: Record<string, unknown>): void;
  /** Nothing more is told, and no question needs an answer. */
  over(): void;
}

/** An answer whose events wait to be told. */
export class CallEvents {
  readonly #feed = new EventFeed();
  #over = false;

  constructor(
    readonly answer: Answer,
    readonly signal: AbortSignal | undefined,
    readonly aside: Aside,
  ) {}

  /** Tells from now on. */
  tell(listener: Listener): void {
    this.answer.tell({
      text: (text) => this.#take(text, listener),
      rest: () => {
        if (!this.#over) listener.rest?.();
      },
      end: () => this.#fail(listener),
      fail: (cause) => this.#fail(listener, cause),
    });
  }

  /** Tells no more until `resume`. */
  pause(): void {
    if (!this.#over) this.answer.pause();
  }

  resume(): void {
    this.answer.resume();
  }

  /** Wants no more: closed before its end, the answer interrupts the turn. */
  cancel(): void {
    if (this.#over) return;
    this.#close();
    this.answer.destroy();
  }

  #close(): void {
    this.#over = true;
    this.aside.over();
  }

  #take(text: string, listener: Listener): void {
    for (const { event, data } of this.#feed.push(text)) {
      if (this.#over) return;
      if (data === '[DONE]') return this.#end(listener);
      const value = parsed(data);
      if (!isObject(value)) return this.#fail(listener, new Error(`this is no event: ${data.slice(0, 80)}`));
      if (isForModel(event)) listener.event(event, value);
      else this.aside.event(event, value);
    }
  }

  #end(listener: Listener): void {
    this.#close();
    // Read to its end, the connection serves the next call.
    this.answer.resume();
    listener.end();
  }

  #fail(listener: Listener, cause?: unknown): void {
    if (this.#over) return;
    this.#close();
    this.answer.destroy();
    if (this.signal?.aborted === true) listener.abort(this.signal.reason);
    else listener.cut(cutShort(cause));
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object';
}

function isForModel(event: string): event is CallEvent {
  return event === 'message' || event === 'generated' || event === 'failed';
}

function cutShort(cause?: unknown): BinderyError {
  const hint = 'The daemon or the connection to it ended; the thread can be resumed.';
  return new BinderyError('the stream ended before the turn did', 'stream_cut', hint, { cause });
}

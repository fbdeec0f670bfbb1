// Connections to a daemon: kept when an answer is complete, for the next request.

import net from 'node:net';
import tls from 'node:tls';

import { ResponseFeed, type Head } from './http1.js';

/** Who is told of the text of an answer. */
export interface TextListener {
  text(text: string): void;
  /** All that came at once has been told. */
  rest(): void;
  end(): void;
  /** It was cut. */
  fail(cause: unknown): void;
}

/** Connections that wait for a request, by where they lead. */
const idle = new Map<string, Connection[]>();

/** One that waits, or a new one. */
export function connectionTo(url: URL): Connection {
  return idle.get(url.origin)?.pop() ?? new Connection(url);
}

export class Connection {
  readonly #socket: net.Socket;
  readonly #origin: string;
  #answer: Answer | undefined;
  /** By us, not by the server. */
  #closed = false;

  /** Whether a request was sent on it before. */
  used = false;

  constructor(url: URL) {
    this.#origin = url.origin;
    this.#socket = socketTo(url);
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (bytes: Buffer) => this.#take(bytes));
    this.#socket.on('error', (cause) => this.#lost(cause));
    this.#socket.on('close', () => this.#lost(new Error('the connection was closed')));
  }

  /** Sends a request; an abort closes the connection. */
  send(request: string, signal: AbortSignal | undefined): Answer {
    this.#socket.ref();
    const answer = new Answer(this, signal);
    this.#answer = answer;
    this.#socket.write(request);
    return answer;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  /** The answer is complete. */
  keep(): void {
    this.#answer = undefined;
    this.used = true;
    this.#socket.resume();
    // One that nobody uses must not keep an app alive that has nothing else to do.
    this.#socket.unref();
    const waiting = idle.get(this.#origin);
    if (waiting === undefined) idle.set(this.#origin, [this]);
    else waiting.push(this);
  }

  #take(bytes: Buffer): void {
    if (this.#answer === undefined) this.destroy();
    else this.#answer.take(bytes);
  }

  #lost(cause: unknown): void {
    const waiting = idle.get(this.#origin);
    const at = waiting?.indexOf(this) ?? -1;
    if (at >= 0) waiting?.splice(at, 1);
    if (waiting?.length === 0) idle.delete(this.#origin);
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer === undefined) return;
    if (!this.#closed) this.#suspect();
    answer.lost(cause, !this.#closed);
  }

  /** Where the server cut an answer, what waits is likely dead, and would lose the next request. */
  #suspect(): void {
    const waiting = idle.get(this.#origin) ?? [];
    idle.delete(this.#origin);
    for (const other of waiting) other.destroy();
  }
}

/** An answer on its way; nobody is told of its text before `tell`. */
export class Answer {
  readonly head: Promise<Head>;
  readonly #feed: ResponseFeed;
  readonly #connection: Connection;
  readonly #signal: AbortSignal | undefined;
  readonly #abort = (): void => this.#connection.destroy();
  #begun: { resolve: (head: Head) => void; reject: (cause: unknown) => void } | undefined;
  #listener: TextListener | undefined;
  /** Came with the head, before anybody listened. */
  #early = '';
  #over: { cause?: unknown } | undefined;
  /** Nobody wants it any longer, or another in its place. */
  abandoned = false;
  /** Called when it is over, and whether the server cut it. */
  onOver: ((cut: boolean) => void) | undefined;

  constructor(connection: Connection, signal: AbortSignal | undefined) {
    this.#connection = connection;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#abort);
    this.head = new Promise((resolve, reject) => {
      this.#begun = { resolve, reject };
    });
    this.#feed = new ResponseFeed({
      head: (head) => this.#begun?.resolve(head),
      text: (text) => this.#text(text),
      end: (reusable) => this.#end(reusable),
    });
  }

  /** Whether nothing of it has come. */
  get untouched(): boolean {
    return this.#feed.untouched;
  }

  /** Tells from now on. */
  tell(listener: TextListener): void {
    this.#listener = listener;
    if (this.#early !== '') listener.text(this.#early);
    this.#early = '';
    listener.rest();
    if (this.#over !== undefined) this.#tellEnd(listener, this.#over);
  }

  /** Tells no more until `resume`. */
  pause(): void {
    if (this.#over === undefined) this.#connection.pause();
  }

  resume(): void {
    if (this.#over === undefined) this.#connection.resume();
  }

  /** Wants no more of it: the daemon sees the connection end. */
  destroy(): void {
    if (this.#over === undefined) this.#connection.destroy();
  }

  /** Cuts it for whoever listens. */
  abandon(): void {
    this.abandoned = true;
    this.destroy();
  }

  /** Bytes of the connection. */
  take(bytes: Buffer): void {
    try {
      this.#feed.push(bytes);
    } catch (cause) {
      this.#connection.destroy();
      return this.lost(cause, false);
    }
    if (this.#over === undefined) this.#listener?.rest();
  }

  /** The connection is gone, by us or by the server. */
  lost(cause: unknown, cut: boolean): void {
    if (this.#over !== undefined || this.#feed.close()) return;
    this.#begun?.reject(cause);
    this.#close({ cause }, cut);
  }

  #text(text: string): void {
    if (this.#listener === undefined) this.#early += text;
    else this.#listener.text(text);
  }

  #end(reusable: boolean): void {
    if (reusable) this.#connection.keep();
    else this.#connection.destroy();
    this.#close({}, false);
  }

  #close(over: { cause?: unknown }, cut: boolean): void {
    this.#over = over;
    this.#signal?.removeEventListener('abort', this.#abort);
    this.onOver?.(cut);
    if (this.#listener !== undefined) this.#tellEnd(this.#listener, over);
  }

  #tellEnd(listener: TextListener, over: { cause?: unknown }): void {
    if ('cause' in over) listener.fail(over.cause);
    else listener.end();
  }
}

function socketTo(url: URL): net.Socket {
  // An address of version 6 stands in brackets.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (url.protocol !== 'https:') return net.connect({ host, port: Number(url.port || 80) });
  const servername = net.isIP(host) === 0 ? { servername: host } : {};
  return tls.connect({ host, port: Number(url.port || 443), ...servername });
}

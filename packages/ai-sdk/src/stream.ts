// A request whose answer is a stream.

import { connectionTo, type Answer } from './connection.js';
import { errorOfProblem, unanswered } from './errors.js';
import type { Head } from './http1.js';
import type { Lease } from './lease.js';
import { urlOf, type Server } from './server.js';

/** An answer that has begun. */
export interface Begun extends Head {
  answer: Answer;
  /** Where it was asked for. */
  url: string;
}

/** Posts, and throws what the daemon refuses. The pace of the reader is the pace of the answer. */
export async function stream(
  server: Server,
  path: string,
  body: unknown,
  signal: AbortSignal | undefined,
  lease: Lease,
): Promise<Begun> {
  const url = urlOf(server, path);
  const begun = await sent(url, requestOf(url, server.token, JSON.stringify(body)), signal, lease);
  if (begun.status >= 200 && begun.status < 300) return begun;
  throw errorOfProblem(begun.url, begun.status, await textOf(begun.answer));
}

function requestOf(url: URL, token: string, body: string): string {
  return [
    `POST ${url.pathname}${url.search} HTTP/1.1`,
    `host: ${url.host}`,
    // Nothing that could end the line, whatever is given.
    `authorization: Bearer ${token.replace(/[^\x20-\x7e]/g, '')}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
}

async function sent(url: URL, request: string, signal: AbortSignal | undefined, lease: Lease): Promise<Begun> {
  let first: unknown;
  for (;;) {
    signal?.throwIfAborted();
    const connection = connectionTo(url);
    const answer = connection.send(request, signal);
    lease.hold(answer);
    try {
      return { ...(await answer.head), answer, url: url.href };
    } catch (cause) {
      signal?.throwIfAborted();
      first ??= cause;
      // A kept connection may have been closed by the server just now; it has seen nothing of this.
      if (!connection.used || !answer.untouched || answer.abandoned) throw unanswered(url.toString(), first);
    }
  }
}

function textOf(answer: Answer): Promise<string> {
  return new Promise((resolve) => {
    let all = '';
    answer.tell({
      text: (text) => {
        all += text;
      },
      rest: () => undefined,
      end: () => resolve(all),
      // What came is all there is to show.
      fail: () => resolve(all),
    });
  });
}

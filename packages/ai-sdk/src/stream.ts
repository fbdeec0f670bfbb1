// A request whose answer is a stream. Node's own client: `fetch` would cost more than all the rest.

import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';

import { errorOfProblem, unanswered } from './errors.js';
import type { Server } from './daemon.js';

const agents = { 'http:': new http.Agent({ keepAlive: true }), 'https:': new https.Agent({ keepAlive: true }) };

/** Posts, and throws what the daemon refuses. The pace of the reader is the pace of the answer. */
export async function stream(
  server: Server,
  path: string,
  body: unknown,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  const url = new URL(path, server.url);
  const response = await sent(url, server.token, Buffer.from(JSON.stringify(body)), signal);
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return response;
  throw errorOfProblem(url.toString(), status, await textOf(response));
}

function sent(url: URL, token: string, body: Buffer, signal: AbortSignal | undefined): Promise<IncomingMessage> {
  const secure = url.protocol === 'https:';
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': body.byteLength,
  };
  return new Promise((resolve, reject) => {
    const request = (secure ? https : http).request(url, {
      method: 'POST',
      headers,
      agent: agents[secure ? 'https:' : 'http:'],
      ...(signal === undefined ? {} : { signal }),
    });
    request.once('response', resolve);
    request.once('error', (cause: NodeJS.ErrnoException) => {
      if (signal?.aborted === true) reject(signal.reason as Error);
      // A kept connection may have been closed by the server just now; nothing was sent on it.
      else if (request.reusedSocket && cause.code === 'ECONNRESET') sent(url, token, body, signal).then(resolve, reject);
      else reject(unanswered(url.toString(), cause));
    });
    request.end(body);
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch {
    // What came is all there is to show.
  }
  return Buffer.concat(chunks).toString('utf8');
}

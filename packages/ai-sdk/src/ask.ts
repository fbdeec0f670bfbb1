// Requests to the daemon.

import { errorOfProblem, unanswered } from './errors.js';
import { urlOf, type Server } from './server.js';

/** Asks, and throws what the daemon refuses. */
export async function ask(
  server: Server,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Response> {
  const url = urlOf(server, path).href;
  const response = await sent(url, {
    method,
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  if (response.ok) return response;
  throw errorOfProblem(url, response.status, await response.text().catch(() => ''));
}

async function sent(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (cause) {
    if (init.signal?.aborted === true) throw cause;
    throw unanswered(url, cause);
  }
}

// Where a daemon is asked.

import { BinderyError } from './errors.js';

/** Where to ask, and with which token. */
export interface Server {
  url: string;
  token: string;
}

/** The address of a path, below the address of the server: it may stand behind a proxy. */
export function urlOf(server: Server, path: string): URL {
  const whole = server.url.replace(/\/+$/, '') + path;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new BinderyError(
    `the setting \`server.url\` is no address: ${server.url}`,
    'bad_server',
    'Give it as `http://127.0.0.1:4747`, or as `https://` with a host and, behind a proxy, a path.',
  );
}

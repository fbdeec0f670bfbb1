// The server of the chat: a conversation comes in, Codex answers. `npm run build && npm start`

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { convertToModelMessages, streamText } from 'ai';
import { createCodex } from '@bindery/ai-sdk';

// The folder that Codex works in. It asks before it runs or changes anything.
const cwd = process.argv[2] ?? process.cwd();
const codex = createCodex({ thread: { cwd, approvalPolicy: 'untrusted', sandbox: 'read-only' } });

const MOST_BYTES = 8 * 1024 * 1024;

/** Refused by us, with words for whoever asked. */
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function chat(request, response) {
  // A page of somebody else's could send anything but JSON without being asked for its origin.
  if (!request.headers['content-type']?.startsWith('application/json')) throw new Refusal(415, 'messages come as application/json');
  const messages = messagesOf(await bodyOf(request));
  // The Stop button closes the connection, and that interrupts the turn.
  const abort = new AbortController();
  response.on('close', () => abort.abort());
  const result = streamText({
    // The messages come from the browser, and they say which thread to go on in. Only threads of the same owner count.
    // An app with accounts puts the id of the user here who is signed in.
    model: codex(undefined, { owner: ownerOf(request, response) }),
    messages: await convertToModelMessages(messages),
    abortSignal: abort.signal,
    onError: ({ error }) => console.error(error.message ?? error),
  });
  result.pipeUIMessageStreamToResponse(response, {
    originalMessages: messages,
    onError: (error) => error.message ?? String(error),
  });
}

async function bodyOf(request) {
  let body = '';
  for await (const chunk of request) {
    body += chunk;
    if (body.length > MOST_BYTES) throw new Refusal(413, 'the conversation is too long');
  }
  return body;
}

/**
 * What a browser may say: its own words, files as data, and the answers it was given. Instructions are the server's, and
 * the server fetches no addresses that a browser names.
 */
function messagesOf(body) {
  let messages;
  try {
    ({ messages } = JSON.parse(body));
  } catch {
    throw new Refusal(400, 'the body is no JSON');
  }
  const isPart = (part) => typeof part?.type === 'string' && (part.url === undefined || /^data:/i.test(part.url));
  const fits = (message) => ['user', 'assistant'].includes(message?.role) && Array.isArray(message.parts) && message.parts.every(isPart);
  if (!Array.isArray(messages) || !messages.every(fits)) {
    throw new Refusal(400, 'messages are of a user or an assistant, with files as data');
  }
  return messages;
}

/** Each browser is an owner of its own, known by a cookie that scripts cannot read. */
function ownerOf(request, response) {
  const known = /(?:^|;\s*)owner=([\w-]{36})(?:;|$)/.exec(request.headers.cookie ?? '')?.[1];
  const owner = known ?? randomUUID();
  if (known === undefined) response.setHeader('set-cookie', `owner=${owner}; HttpOnly; SameSite=Strict; Path=/`);
  return owner;
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

async function page(request, response) {
  const path = normalize(new URL(request.url, 'http://x').pathname);
  const file = path === '/' ? '/index.html' : path;
  const content = await readFile(join(import.meta.dirname, 'dist', file));
  // The cookie comes with the page, so that two requests of one page cannot get two.
  if (file === '/index.html') ownerOf(request, response);
  response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream').end(content);
}

const server = createServer((request, response) => {
  const answer = request.url === '/api/chat' && request.method === 'POST' ? chat : page;
  answer(request, response).catch((error) => {
    if (!response.headersSent) response.statusCode = error.status ?? (error.code === 'ENOENT' ? 404 : 500);
    response.end(String(error.message ?? error));
  });
});
// Ends Codex before the server, so that nothing is cut off in the middle.
process.once('SIGTERM', () => codex.shutdown().finally(() => process.exit()));
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});

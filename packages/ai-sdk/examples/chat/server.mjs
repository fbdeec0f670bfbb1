// The server of the chat: a conversation comes in, Codex answers. `npm run build && npm start`

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { convertToModelMessages, streamText } from 'ai';
import { createCodex } from '@bindery/ai-sdk';

// The folder that Codex works in. It asks before it runs or changes anything.
const cwd = process.argv[2] ?? process.cwd();
const codex = createCodex({ thread: { cwd, approvalPolicy: 'untrusted', sandbox: 'read-only' } });

async function chat(request, response) {
  // A page of somebody else's could send anything but JSON without being asked for its origin.
  if (!request.headers['content-type']?.startsWith('application/json')) {
    response.statusCode = 415;
    return void response.end('messages come as application/json');
  }
  let body = '';
  for await (const chunk of request) body += chunk;
  const { messages } = JSON.parse(body);
  // The Stop button closes the connection, and that interrupts the turn.
  const abort = new AbortController();
  response.on('close', () => abort.abort());
  const result = streamText({
    model: codex(),
    messages: await convertToModelMessages(messages),
    abortSignal: abort.signal,
    onError: ({ error }) => console.error(error.message ?? error),
  });
  result.pipeUIMessageStreamToResponse(response, {
    originalMessages: messages,
    onError: (error) => error.message ?? String(error),
  });
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

async function page(request, response) {
  const path = normalize(new URL(request.url, 'http://x').pathname);
  const file = path === '/' ? '/index.html' : path;
  const content = await readFile(join(import.meta.dirname, 'dist', file));
  response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream').end(content);
}

const server = createServer((request, response) => {
  const answer = request.url === '/api/chat' && request.method === 'POST' ? chat : page;
  answer(request, response).catch((error) => {
    if (!response.headersSent) response.statusCode = error.code === 'ENOENT' ? 404 : 500;
    response.end(String(error.message ?? error));
  });
});
// Ends Codex before the server, so that nothing is cut off in the middle.
process.once('SIGTERM', () => codex.shutdown().finally(() => process.exit()));
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});

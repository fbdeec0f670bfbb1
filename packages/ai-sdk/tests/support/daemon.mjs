// A stand-in for `bindery serve`: cuts its first answer and gives the others. For what the real one cannot be made to do.

import { createServer } from 'node:http';

const PARTS = [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: `I am ${process.pid}.` }, { type: 'text-end', id: '1' },
  { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: { inputTokens: {}, outputTokens: {} } },
];

let asked = 0;
const server = createServer((request, response) => {
  if (request.url === '/healthz') return void response.end('{}');
  asked += 1;
  response.setHeader('content-type', 'text/event-stream');
  for (const part of PARTS.slice(0, asked === 1 ? 3 : undefined)) response.write(`data: ${JSON.stringify(part)}\n\n`);
  if (asked === 1) setTimeout(() => request.socket.destroy(), 100);
  else response.end('data: [DONE]\n\n');
});
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}`, token: 'secret' }));
});
process.stdin.on('end', () => process.exit()).resume();

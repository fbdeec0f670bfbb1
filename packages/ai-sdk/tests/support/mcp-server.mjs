// A small MCP server over stdio: `add` adds, `ask` asks the user, `wrong` fails.

import { createInterface } from 'node:readline';

const waiting = new Map();
let asked = 0;

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const said = (text) => ({ content: [{ type: 'text', text }] });

const TOOLS = {
  add: ({ a, b }) => said(String(a + b)),
  ask({ message = 'Who are you?' }) {
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const id = `question ${(asked += 1)}`;
    send({ id, method: 'elicitation/create', params: { message, requestedSchema } });
    return new Promise((resolve) => waiting.set(id, (answer) => resolve(said(JSON.stringify(answer)))));
  },
  wrong: () => ({ ...said('no such thing'), isError: true }),
};

const inputSchema = {
  type: 'object',
  properties: { a: { type: 'integer' }, b: { type: 'integer' }, message: { type: 'string' } },
};

async function answered({ method, params }) {
  switch (method) {
    case 'initialize':
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'toy', version: '1' } };
    case 'tools/list':
      return { tools: Object.keys(TOOLS).map((name) => ({ name, description: name, inputSchema })) };
    case 'tools/call':
      return TOOLS[params.name](params.arguments ?? {});
    default:
      throw new Error('no such method');
  }
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined) return waiting.get(message.id)?.(message.result ?? message.error);
  if (message.id === undefined) return undefined;
  try {
    return send({ id: message.id, result: await answered(message) });
  } catch (error) {
    return send({ id: message.id, error: { code: -32601, message: error.message } });
  }
});

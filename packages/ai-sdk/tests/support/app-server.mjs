// A stand-in for `codex app-server`: tells the items in FAKE_ITEMS in every turn. For what no scripted model provokes.

import { createInterface } from 'node:readline';

const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const items = JSON.parse(process.env.FAKE_ITEMS);
const [threadId, turnId] = ['thr-1', 'turn-1'];

const ANSWERS = {
  initialize: () => ({ userAgent: 'codex_cli_rs/0.166.0 (test)', codexHome: '/nowhere', platformFamily: 'unix', platformOs: 'linux' }),
  'thread/start': () => ({ thread: { id: threadId }, model: 'gpt-5.5', modelProvider: 'test', cwd: '/' }),
  'turn/start': () => ({ turn: { id: turnId, status: 'inProgress', items: [] } }),
};

function tell() {
  send({ method: 'turn/started', params: { threadId, turn: { id: turnId, status: 'inProgress', items: [] } } });
  for (const item of items) {
    send({ method: 'item/started', params: { threadId, turnId, item: { ...item, status: 'inProgress', result: null } } });
    send({ method: 'item/completed', params: { threadId, turnId, item } });
  }
  send({ method: 'turn/completed', params: { threadId, turn: { id: turnId, status: 'completed', items: [] } } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  send({ id, result: ANSWERS[method]?.() ?? {} });
  if (method === 'turn/start') tell();
});

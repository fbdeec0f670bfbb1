// Drives a turn with a client that is made from the API document: an approval, a tool, the end.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';

declare const process: { env: Record<string, string | undefined> };

type Schemas = components['schemas'];

const client = createClient<paths>({
  baseUrl: process.env.BASE ?? '',
  headers: { authorization: `Bearer ${process.env.TOKEN}` },
});

function given<T>(result: { data?: T; error?: unknown }): T {
  if (result.data === undefined) throw new Error(JSON.stringify(result.error));
  return result.data;
}

const thread = given(
  await client.POST('/v1/threads', {
    params: { header: { 'idempotency-key': 'a thread' } },
    body: {
      title: 'made by a client',
      settings: { approvalPolicy: 'untrusted', sandbox: 'danger-full-access' },
      tools: [{ type: 'function', name: 'weather', inputSchema: { type: 'object' } }],
    },
  }),
);
const turn = given(
  await client.POST('/v1/threads/{thread}/turns', {
    params: { path: { thread: thread.id } },
    body: { input: [{ type: 'text', text: 'go' }] },
  }),
);

async function* frames(turn: string): AsyncGenerator<Schemas['TurnEvent']> {
  const opened = await client.GET('/v1/turns/{turn}/events', {
    params: { path: { turn } },
    parseAs: 'stream',
  });
  const reader = given(opened)!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const lines = text.slice(0, end).split('\n').filter((line) => !line.startsWith(':'));
      text = text.slice(end + 2);
      const fields = lines.map((line) => line.split(/: (.*)/s).slice(0, 2));
      if (lines.length > 0) yield Object.fromEntries(fields) as Schemas['TurnEvent'];
    }
  }
}

function answerTo(ask: Schemas['Ask']): Schemas['Answer'] {
  switch (ask.kind) {
    case 'toolCall':
      return { kind: 'toolResult', success: true, content: [{ type: 'inputText', text: 'sunny' }] };
    case 'fileChange':
      return { kind: 'decision', decision: 'accept' };
    default:
      throw new Error(`nobody expects ${ask.kind}`);
  }
}

const asked: string[] = [];
let end: Schemas['TurnEnd'] | undefined;
let text = '';
for await (const event of frames(turn.id)) {
  switch (event.event) {
    case 'part': {
      const part: Schemas['Part'] = JSON.parse(event.data);
      if (part.type === 'text-delta') text += part.delta;
      break;
    }
    case 'interrupt': {
      const { token, ask }: Schemas['Interrupt'] = JSON.parse(event.data);
      asked.push(ask.kind);
      const path = { token };
      given(
        await client.POST('/v1/interrupts/{token}/answer', { params: { path }, body: answerTo(ask) }),
      );
      break;
    }
    case 'end':
      end = JSON.parse(event.data);
  }
}
const read = given(await client.GET('/v1/turns/{turn}', { params: { path: { turn: turn.id } } }));
const refused = await client.GET('/v1/threads', { params: { query: { limit: 0 } } });
console.log(
  JSON.stringify({
    asked,
    text,
    state: end?.state,
    read: { state: read.state, text: read.text, paths: read.changes?.map((c) => c.path) },
    problem: refused.error?.code,
  }),
);

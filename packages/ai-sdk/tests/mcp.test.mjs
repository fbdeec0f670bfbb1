// Tools of MCP servers, from Codex's configuration, from the thread's, and from the settings of the other provider.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import test from 'node:test';

import { generateText, streamText } from 'ai';
import { createCodexAppServer } from '@bindery/ai-sdk';

import { all, first, soon, startStage, text, then } from './support/stage.mjs';

const SERVER = fileURLToPath(new URL('./support/mcp-server.mjs', import.meta.url));
const stage = await startStage({
  tables: `[mcp_servers.toy]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(SERVER)}]\nrequired = true\n`,
});
const thread = { approvalPolicy: 'on-request', sandbox: 'read-only' };
const onElicitation = ({ toolParams }) => ({ action: toolParams ? 'accept' : 'decline' });

const used = (name, input, id, server = 'toy') => ({
  type: 'call', name, namespace: `mcp__${server}`, arguments: input, call_id: id,
});

test("a server's tool is a dynamic tool that the provider runs", async () => {
  await stage.push(first('add them.', used('add', { a: 1, b: 2 }, 'm1')), then('add them.', text('Three.')));
  const model = stage.provider({ thread, onElicitation })();
  const { stream } = await model.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'add them.' }] }] });
  const parts = (await soon(all(stream), 'a tool')).filter((part) => (part.toolCallId ?? part.id) === 'm1');
  assert.deepEqual(parts.map((part) => part.type), [
    'tool-input-start', 'tool-input-delta', 'tool-input-end', 'tool-call', 'tool-approval-request', 'tool-result',
  ]);
  const [start, , , called, , result] = parts;
  assert.deepEqual([start.toolName, start.dynamic, start.providerExecuted], ['mcp:toy/add', true, true]);
  assert.deepEqual([called.dynamic, called.providerExecuted, JSON.parse(called.input)], [true, true, { a: 1, b: 2 }]);
  assert.deepEqual([result.dynamic, result.result.result.content], [true, [{ type: 'text', text: '3' }]]);
});

test('the SDK takes them as they are, in streams and in results', async () => {
  for (const how of ['stream', 'generate']) {
    const prompt = `add by ${how}.`;
    await stage.push(first(prompt, used('add', { a: 2, b: 2 }, `s_${how}`)), then(prompt, text('Four.')));
    const model = stage.provider({ thread, onElicitation })();
    let content;
    if (how === 'stream') {
      const result = streamText({ model, prompt });
      const parts = await soon(all(result.fullStream), prompt);
      assert.deepEqual(parts.filter((part) => part.type === 'error'), []);
      content = await result.content;
    } else {
      ({ content } = await soon(generateText({ model, prompt }), prompt));
    }
    const [called, result] = ['tool-call', 'tool-result'].map((type) => content.find((part) => part.type === type));
    assert.deepEqual([called.toolName, called.dynamic, called.providerExecuted, called.input], ['mcp:toy/add', true, true, { a: 2, b: 2 }]);
    assert.deepEqual([result.toolName, result.dynamic, result.providerExecuted], ['mcp:toy/add', true, true]);
    assert.equal(result.output.result.content[0].text, '4');
    assert.equal(content.at(-1).text, 'Four.');
  }
});

test('a tool that fails is an error of the tool, and the turn goes on', async () => {
  await stage.push(first('go wrong.', used('wrong', {}, 'w1')), then('go wrong.', text('I see.')));
  const model = stage.provider({ thread, onElicitation })();
  const result = await soon(generateText({ model, prompt: 'go wrong.' }), 'a failure');
  assert.equal(result.text, 'I see.');
  const failed = result.content.find((part) => part.toolName === 'mcp:toy/wrong' && part.type !== 'tool-call');
  assert.equal(failed.type, 'tool-error');
  assert.match(JSON.stringify(failed.error), /no such thing/);
});

test('without anybody to allow it, the call waits for a native answer; a no does not run it', async () => {
  await stage.push(first('add alone.', used('add', { a: 1, b: 1 }, 'q1')), then('add alone.', text('Not added.')));
  const model = stage.provider({ thread })();
  const asked = await soon(generateText({ model, prompt: 'add alone.' }), 'a question');
  assert.equal(asked.finishReason, 'tool-calls');
  const { approvalId, toolCall } = asked.content.find((part) => part.type === 'tool-approval-request');
  assert.deepEqual([toolCall.toolName, toolCall.input], ['mcp:toy/add', { a: 1, b: 1 }]);
  const answer = { type: 'tool-approval-response', approvalId, approved: false, providerExecuted: true };
  const messages = [{ role: 'user', content: 'add alone.' }, ...asked.response.messages, { role: 'tool', content: [answer] }];
  const result = await soon(generateText({ model, messages }), 'a no');
  assert.equal(result.text, 'Not added.');
  const heard = JSON.stringify((await stage.asked('add alone.')).at(-1).input.filter((item) => item.output !== undefined));
  assert.doesNotMatch(heard, /"2"/);
});

test("servers of a thread's own, and of the other provider's settings", async () => {
  // A turn need not wait for servers that are not required, and then has not their tools.
  const server = { command: process.execPath, args: [SERVER], required: true };
  const ours = stage.provider({ thread: { ...thread, config: { mcp_servers: { own: server } } }, onElicitation });
  const theirs = createCodexAppServer({
    defaultThreadSettings: { ...thread, cwd: stage.project },
    transport: { stdio: { command: stage.codex } },
    mcpServers: {
      own: { type: 'stdio', ...server, env: { SHOWN: 'yes' }, cwd: stage.project },
      remote: { type: 'http', url: 'http://127.0.0.1:9/mcp', bearerToken: 'secret', headers: { 'x-own': '1' } },
    },
    approvals: {
      // In its words.
      onElicitation: ({ serverName, _meta }) => ({
        action: serverName === 'own' && _meta.codex_approval_kind === 'mcp_tool_call' ? 'accept' : 'decline', content: null, _meta: null,
      }),
    },
  });
  stage.before(() => theirs.shutdown());
  for (const [how, provider] of Object.entries({ ours, theirs })) {
    const prompt = `add in ${how}.`;
    await stage.push(first(prompt, used('add', { a: 3, b: 4 }, `o_${how}`, 'own')), then(prompt, text('Seven.')));
    const result = await soon(generateText({ model: provider(), prompt }), prompt);
    assert.equal(result.text, 'Seven.');
    const added = result.content.find((part) => part.type === 'tool-result' && part.toolName === 'mcp:own/add');
    assert.equal(added.output.result.content[0].text, '7');
  }
});

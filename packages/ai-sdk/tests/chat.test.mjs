// The classes beneath `useChat` against a server of a few lines: approvals and denials, on either major.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import test from 'node:test';

import {
  AbstractChat, convertToModelMessages, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, streamText,
} from 'ai';

import { added, exec, first, patch, reply, soon, startStage, text, then, until } from './support/stage.mjs';

const stage = await startStage();
const model = stage.provider({ thread: { approvalPolicy: 'untrusted', sandbox: 'read-only' } })();

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const { messages } = JSON.parse(body);
  const result = streamText({ model, messages: await convertToModelMessages(messages) });
  result.pipeUIMessageStreamToResponse(response, { originalMessages: messages });
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
stage.before(() => new Promise((resolve) => {
  server.close(resolve);
  server.closeAllConnections();
}));

/** What React keeps for the hook. */
class State {
  status = 'ready';
  error = undefined;
  messages = [];
  pushMessage = (message) => (this.messages = [...this.messages, message]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => (this.messages = this.messages.map((old, at) => (at === index ? this.snapshot(message) : old)));
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor() {
    super({
      state: new State(),
      transport: new DefaultChatTransport({ api: `http://127.0.0.1:${server.address().port}/api/chat` }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
  }

  /** The last part of the conversation that is a tool's. */
  get tool() {
    return this.messages.at(-1).parts.findLast((part) => part.type === 'dynamic-tool');
  }

  get said() {
    return this.messages.at(-1).parts.filter((part) => part.type === 'text').map((part) => part.text).join(' ');
  }
}

const quiet = (chat) => until(() => chat.status === 'ready' || chat.status === 'error', 'the chat is ready');

/** Asks, answers what is asked back, and waits for the end. */
async function answered(chat, words, approved) {
  await soon(chat.sendMessage({ text: words }), words);
  assert.equal(chat.error, undefined);
  assert.equal(chat.tool.state, 'approval-requested', JSON.stringify(chat.messages.at(-1)));
  assert.equal(chat.tool.providerExecuted, true);
  await soon(chat.addToolApprovalResponse({ id: chat.tool.approval.id, approved }), 'the answer');
  await until(() => ['output-available', 'output-denied', 'output-error'].includes(chat.tool?.state), 'the tool is over');
  await quiet(chat);
  assert.equal(chat.error, undefined);
}

test('a command is approved, a patch denied, and the conversation goes on in its thread', async () => {
  const chat = new Chat();
  await stage.push(
    first('count.', text('I count.'), exec('echo two', 'h1')), then('count.', text('Two.')),
    first('boast.', patch(added('boast.txt', 'big'), 'h2')), then('boast.', text('Then not.')),
    reply('still there?', text('Still.')),
  );
  await answered(chat, 'count.', true);
  assert.equal(chat.tool.state, 'output-available');
  assert.match(JSON.stringify(chat.tool.output), /two/);
  assert.equal(chat.said, 'I count. Two.');
  // One answer, and one call in it, however often it was told.
  assert.equal(chat.messages.length, 2);
  assert.equal(chat.messages[1].parts.filter((part) => part.type === 'dynamic-tool').length, 1);

  await answered(chat, 'boast.', false);
  assert.notEqual(chat.tool.state, 'output-available');
  assert.equal(chat.said, 'Then not.');
  assert.ok(!existsSync(`${stage.project}/boast.txt`));

  await soon(chat.sendMessage({ text: 'still there?' }), 'the next turn');
  assert.equal(chat.said, 'Still.');
  const [body] = await stage.asked('still there?');
  assert.match(JSON.stringify(body.input), /boast\./);
});

test('a question that is passed over is withdrawn by the next message', async () => {
  const chat = new Chat();
  await stage.push(first('touch it.', exec('touch passed.txt', 'h3')), reply('never mind.', text('Fine.')));
  await soon(chat.sendMessage({ text: 'touch it.' }), 'a question');
  assert.equal(chat.tool.state, 'approval-requested');
  await soon(chat.sendMessage({ text: 'never mind.' }), 'the next turn');
  assert.equal(chat.error, undefined);
  assert.equal(chat.said, 'Fine.');
  assert.ok(!existsSync(`${stage.project}/passed.txt`));
});

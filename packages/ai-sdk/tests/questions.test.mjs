// Codex's rarer questions: permissions, questions to the user, elicitations of MCP servers.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import test from 'node:test';

import { generateText } from 'ai';

import { call, first, reply, soon, startStage, text, then } from './support/stage.mjs';

const SERVER = fileURLToPath(new URL('./support/mcp-server.mjs', import.meta.url));
const stage = await startStage({
  settings: 'features.request_permissions_tool = true\nfeatures.default_mode_request_user_input = true\n',
  tables: `[mcp_servers.toy]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(SERVER)}]\nrequired = true\n`,
});
const thread = { approvalPolicy: 'on-request', sandbox: 'read-only' };
const outside = [];
process.on('unhandledRejection', (error) => outside.push(error));

const colour = {
  id: 'colour', header: 'Colour', question: 'Which colour?',
  options: [{ label: 'Red', description: 'warm' }, { label: 'Blue', description: 'cold' }],
};
const KINDS = {
  permissions: {
    callback: 'onPermissions',
    tool: 'codex_permissions',
    asks: (id) => call('request_permissions', { reason: 'to fetch', permissions: { network: { enabled: true } } }, id),
    yes: ({ permissions }) => ({ granted: permissions }),
    no: () => ({}),
    // More than was asked for.
    wrong: () => ({ granted: { network: { enabled: true }, fileSystem: { write: ['/'] } } }),
    granted: /"network\\":\{\\"enabled\\":true/,
    refused: /"permissions\\":\{\\"network\\":null|"permissions\\":\{\}/,
    seen: (request) => assert.deepEqual([request.reason, request.permissions.network, request.cwd], ['to fetch', { enabled: true }, stage.project]),
  },
  userInput: {
    callback: 'onToolUserInput',
    tool: 'codex_user_input',
    asks: (id) => call('request_user_input', { questions: [colour] }, id),
    yes: () => ({ colour: 'Red' }),
    no: () => ({}),
    // No such question.
    wrong: () => ({ size: 'Large' }),
    granted: /"colour\\":\{\\"answers\\":\[\\"Red\\"\]/,
    refused: /"answers\\":\{\}/,
    seen: ({ questions }) => assert.deepEqual([questions[0].id, questions[0].options[1].label], ['colour', 'Blue']),
  },
  elicitation: {
    callback: 'onElicitation',
    tool: 'mcp:toy/ask',
    asks: (id) => ({ type: 'call', name: 'ask', namespace: 'mcp__toy', arguments: {}, call_id: id }),
    // First whether the tool may run, then what the tool asks.
    yes: ({ toolParams }) => (toolParams ? { action: 'accept' } : { action: 'accept', content: { name: 'Ann' } }),
    no: ({ toolParams }) => ({ action: toolParams ? 'accept' : 'decline' }),
    // Remembering was not offered for a question of the server's.
    wrong: ({ toolParams }) => (toolParams ? { action: 'accept' } : { action: 'accept', persist: 'always' }),
    granted: /"name\\":\\"Ann\\"/,
    refused: /\\"decline\\"/,
    seen: ({ server, message }) => assert.deepEqual([server, message], ['toy', 'Who are you?']),
  },
};

/** What the model is told after its call; by what a callback answers. */
async function asked(kind, how, settings) {
  const prompt = `${kind} ${how}.`;
  const id = `${kind}_${how}`;
  await stage.push(first(prompt, KINDS[kind].asks(id)), then(prompt, text('Over.')));
  const model = stage.provider({ thread, ...settings })();
  const result = await soon(generateText({ model, prompt }), prompt);
  assert.equal(result.text, 'Over.');
  assert.equal(result.steps.length, 1);
  assert.equal(result.finishReason, 'stop');
  const answers = (await stage.asked(prompt)).at(-1).input.filter((item) => item.call_id === id && item.output !== undefined);
  assert.equal(answers.length, 1);
  return { heard: JSON.stringify(answers[0].output), result };
}

for (const [kind, { callback, tool, yes, no, wrong, granted, refused, seen }] of Object.entries(KINDS)) {
  test(`${callback}: yes`, async () => {
    const requests = [];
    const { heard, result } = await asked(kind, 'yes', { [callback]: async (request) => (requests.push(request), yes(request)) });
    assert.match(heard, granted);
    seen(requests.at(-1));
    assert.equal(requests.at(-1).threadId, result.providerMetadata.codex.threadId);
    const shown = result.content.filter((part) => part.toolName === tool);
    assert.deepEqual(shown.map((part) => part.type), ['tool-call', 'tool-result']);
    assert.ok(shown.every((part) => part.dynamic && part.providerExecuted));
  });

  test(`${callback}: no`, async () => {
    const { heard } = await asked(kind, 'no', { [callback]: no });
    assert.match(heard, refused);
    assert.doesNotMatch(heard, granted);
  });

  for (const nothing of [undefined, null, 'nonsense']) {
    test(`${callback}: ${nothing} means no`, async () => {
      const answer = (request) => (request.toolParams ? { action: 'accept' } : nothing);
      const { heard } = await asked(kind, `nothing ${nothing}`, { [callback]: answer });
      assert.doesNotMatch(heard, granted);
    });
  }

  test(`${callback}: an error means no and is told`, async () => {
    const errors = [];
    const { heard } = await asked(kind, 'throws', {
      [callback]: (request) => {
        if (request.toolParams) return { action: 'accept' };
        throw new Error('nobody home');
      },
      onCallbackError: (error) => {
        errors.push(error.message);
        throw new Error('and nobody listens');
      },
    });
    assert.match(heard, refused);
    assert.deepEqual(errors, ['nobody home']);
  });

  test(`${callback}: an answer that does not fit means no and is told`, async () => {
    const errors = [];
    const settings = { [callback]: wrong, onCallbackError: (error) => errors.push(error.data?.code) };
    const { heard } = await asked(kind, 'wrong', settings);
    assert.match(heard, refused);
    assert.deepEqual(errors, ['answer_unfit']);
  });

  test(`${callback}: no answer in time means no`, async () => {
    const never = (request) => (request.toolParams ? { action: 'accept' } : new Promise(() => undefined));
    const { heard } = await asked(kind, 'late', { [callback]: never, answerTimeoutMs: 4000 });
    assert.match(heard, refused);
  });
}

/** Asks without callbacks, answers in the history. */
async function natively(kind, how, answers) {
  const prompt = `natively ${kind} ${how}.`;
  await stage.push(first(prompt, KINDS[kind].asks(`n_${kind}_${how}`)), then(prompt, text('Over.')));
  const model = stage.provider({ thread })();
  const messages = [{ role: 'user', content: prompt }];
  let result = await soon(generateText({ model, messages }), prompt);
  for (const { options, ...answer } of answers) {
    assert.equal(result.finishReason, 'tool-calls', JSON.stringify(result.content));
    const { approvalId } = result.content.findLast((part) => part.type === 'tool-approval-request');
    const content = [{ type: 'tool-approval-response', approvalId, providerExecuted: true, ...answer }];
    messages.push(...result.response.messages, { role: 'tool', content, providerOptions: options && { codex: options } });
    result = await soon(generateText({ model, messages }), prompt);
  }
  assert.equal(result.text, 'Over.');
  const bodies = await stage.asked(prompt);
  return JSON.stringify(bodies.at(-1).input.filter((item) => item.output !== undefined));
}

test('natively, a yes grants what was asked for, and the reason or the options carry answers', async () => {
  const yes = { approved: true };
  const table = [
    ['permissions', 'yes', [yes]],
    ['userInput', 'reason', [{ approved: true, reason: 'Red' }]],
    ['userInput', 'options', [{ approved: true, options: { answers: { colour: ['Red'] } } }]],
    ['elicitation', 'reason', [yes, { approved: true, reason: '{"name":"Ann"}' }]],
    ['elicitation', 'options', [yes, { approved: true, options: { content: { name: 'Ann' } } }]],
  ];
  for (const [kind, how, answers] of table) assert.match(await natively(kind, how, answers), KINDS[kind].granted, `${kind} ${how}`);
});

test('natively, a no is a no', async () => {
  const no = { approved: false, reason: '{"colour":"Red","name":"Ann"}' };
  for (const [kind, answers] of [['permissions', [no]], ['userInput', [no]], ['elicitation', [{ approved: true }, no]]]) {
    const heard = await natively(kind, 'no', answers);
    assert.match(heard, KINDS[kind].refused, kind);
    assert.doesNotMatch(heard, KINDS[kind].granted, kind);
  }
});

test("a tool's approval can be remembered for the session, where that is offered", async () => {
  const prompt = 'add twice.';
  const add = (a, id) => ({ type: 'call', name: 'add', namespace: 'mcp__toy', arguments: { a, b: 2 }, call_id: id });
  await stage.push(
    first(prompt, add(1, 'r1')), { when: { input: prompt, output_of: 'r2' }, steps: [text('Over.')] },
    { when: { input: prompt, output_of: 'r1' }, steps: [add(40, 'r2')] },
  );
  const requests = [];
  const model = stage.provider({ thread, onElicitation: (request) => (requests.push(request), { action: 'accept', persist: 'session' }) })();
  const result = await soon(generateText({ model, prompt }), prompt);
  assert.equal(result.text, 'Over.');
  assert.deepEqual(requests.map(({ toolParams, persist }) => [toolParams, persist]), [[{ a: 1, b: 2 }, ['session', 'always']]]);
  const results = result.content.filter((part) => part.type === 'tool-result').map((part) => part.output.result.content[0].text);
  assert.deepEqual(results, ['3', '42']);
});

test('a thread goes on after a question that a callback answered', async () => {
  await stage.push(
    first('ask me.', KINDS.userInput.asks('on1')), then('ask me.', text('Red it is.')), reply('and then', text('Done.')),
  );
  const model = stage.provider({ thread, onToolUserInput: KINDS.userInput.yes })();
  const one = await soon(generateText({ model, prompt: 'ask me.' }), 'a question');
  const messages = [{ role: 'user', content: 'ask me.' }, ...one.response.messages, { role: 'user', content: 'and then?' }];
  const two = await soon(generateText({ model, messages }), 'the next turn');
  assert.equal(two.text, 'Done.');
  assert.equal(two.providerMetadata.codex.threadId, one.providerMetadata.codex.threadId);
});

test('nothing was thrown outside a call', () => assert.deepEqual(outside, []));

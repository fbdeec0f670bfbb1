// Tools of the app: run by the SDK over several steps, or by the provider while the stream is open.

import assert from 'node:assert/strict';
import test from 'node:test';

import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

import { all, call, first, reply, soon, startStage, text, then } from './support/stage.mjs';

const stage = await startStage({ unrestricted: true });
const model = stage.provider()();
const stopWhen = stepCountIs(5);

const colours = () => {
  const ran = [];
  const colour = tool({
    description: 'The code of a colour',
    inputSchema: z.object({ name: z.string() }),
    execute: async ({ name }) => {
      ran.push(name);
      return `code of ${name}`;
    },
  });
  return { ran, tools: { colour } };
};

test('tools work after a call without tools', async () => {
  await stage.push(reply('no tools here', text('none')));
  assert.equal((await soon(generateText({ model, prompt: 'no tools here' }), 'plain')).text, 'none');
  await stage.push(first('tell red', call('colour', { name: 'red' }, 'r1')), then('tell red', text('It is red.')));
  const { ran, tools } = colours();
  const result = await soon(generateText({ model, prompt: 'tell red', tools, stopWhen }), 'tools');
  assert.deepEqual(ran, ['red']);
  assert.equal(result.text, 'It is red.');
  assert.equal(result.steps.length, 2);
  // Codex tells what a request used once its tools have answered, so it counts in the next step.
  assert.equal(result.steps.reduce((sum, step) => sum + (step.usage.inputTokens ?? 0), 0), 200);
  assert.equal(result.totalUsage.inputTokens, 200);
  const asked = await stage.asked('tell red');
  assert.match(JSON.stringify(asked.at(-1).input), /code of red/);
});

test('parallel tools run at once, six times over', async () => {
  for (let run = 0; run < 6; run += 1) {
    const prompt = `mix number ${run}.`;
    await stage.push(
      first(prompt, ...['red', 'blue', 'green'].map((name) => call('colour', { name }, `${name}${run}`))),
      then(prompt, text('Mixed.')),
    );
    const { ran, tools } = colours();
    const result = streamText({ model, prompt, tools, stopWhen });
    const parts = await soon(all(result.fullStream), `parallel tools, run ${run}`);
    assert.deepEqual(ran.sort(), ['blue', 'green', 'red']);
    assert.equal(await result.text, 'Mixed.');
    assert.equal(parts.filter((part) => part.type === 'tool-result').length, 3);
    assert.equal(parts.filter((part) => part.type === 'error').length, 0);
  }
});

test('three users with pending tools never see each other', async () => {
  const users = ['ann', 'bob', 'cid'];
  for (const who of users) {
    await stage.push(
      first(`I am ${who}`, call('colour', { name: who }, `c_${who}`)),
      then(`I am ${who}`, text(`for ${who} alone`)),
    );
  }
  let waiting = 0;
  let open;
  const allWait = new Promise((resolve) => (open = resolve));
  const colour = tool({
    description: 'The code of a colour',
    inputSchema: z.object({ name: z.string() }),
    execute: async ({ name }) => {
      if (++waiting === users.length) open();
      await allWait;
      return `secret of ${name}`;
    },
  });
  const told = await soon(
    Promise.all(users.map((who) => generateText({ model, prompt: `I am ${who}`, tools: { colour }, stopWhen }))),
    'three users',
  );
  assert.deepEqual(told.map((result) => result.text), users.map((who) => `for ${who} alone`));
  for (const who of users) {
    for (const body of await stage.asked(`I am ${who}`)) {
      const others = users.filter((other) => other !== who);
      for (const other of others) assert.ok(!JSON.stringify(body.input).includes(`secret of ${other}`));
    }
  }
});

test('a tool that is never answered harms nobody', async () => {
  await stage.push(
    first('leave me', call('later', {}, 'never')),
    reply('somebody else', text('served')),
    reply('never mind', text('moved on')),
  );
  const later = tool({ description: 'Runs elsewhere', inputSchema: z.object({}) });
  const prompt = 'leave me';
  const stuck = await soon(generateText({ model, prompt, tools: { later } }), 'a client tool');
  assert.equal(stuck.finishReason, 'tool-calls');
  const other = await soon(generateText({ model, prompt: 'somebody else' }), 'another call');
  assert.equal(other.text, 'served');
  const messages = [
    { role: 'user', content: prompt },
    ...stuck.response.messages,
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'never', toolName: 'later', output: { type: 'text', value: 'late' } }] },
    { role: 'user', content: 'never mind' },
  ];
  const moved = await soon(generateText({ model, messages, tools: { later } }), 'the same thread');
  assert.equal(moved.text, 'moved on');
});

test('a tool that fails tells Codex why', async () => {
  await stage.push(first('break it', call('broken', {}, 'b1')), then('break it', text('I see.')));
  const broken = tool({
    description: 'Fails',
    inputSchema: z.object({}),
    execute: async () => {
      throw new Error('out of paint');
    },
  });
  const result = await soon(generateText({ model, prompt: 'break it', tools: { broken }, stopWhen }), 'a failure');
  assert.equal(result.text, 'I see.');
  assert.match(JSON.stringify((await stage.asked('break it')).at(-1).input), /out of paint/);
});

test("the SDK's needsApproval holds a tool until it is allowed", async () => {
  for (const approved of [true, false]) {
    const prompt = `paint, allowed ${approved}`;
    await stage.push(first(prompt, call('paint', {}, `p_${approved}`)), then(prompt, text('Painted or not.')));
    let ran = 0;
    const paint = tool({
      description: 'Paints',
      inputSchema: z.object({}),
      needsApproval: true,
      execute: async () => {
        ran += 1;
        return 'painted';
      },
    });
    const tools = { paint };
    const asked = await soon(generateText({ model, prompt, tools, stopWhen }), 'a question');
    const request = asked.content.find((part) => part.type === 'tool-approval-request');
    assert.ok(request, JSON.stringify(asked.content));
    assert.equal(ran, 0);
    const answer = { type: 'tool-approval-response', approvalId: request.approvalId, approved };
    const messages = [{ role: 'user', content: prompt }, ...asked.response.messages, { role: 'tool', content: [answer] }];
    const result = await soon(generateText({ model, messages, tools, stopWhen }), 'the answer');
    assert.equal(result.text, 'Painted or not.');
    assert.equal(ran, approved ? 1 : 0);
  }
});

test("tools of the provider's settings run while the stream is open", async () => {
  const seen = [];
  const own = stage.provider({
    tools: {
      weather: {
        description: 'The weather in a place',
        inputSchema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
        execute: async (input, { threadId }) => {
          seen.push({ input, threadId });
          return { sky: 'blue' };
        },
      },
      storm: {
        inputSchema: { type: 'object', properties: {} },
        execute: () => {
          throw new Error('no umbrella');
        },
      },
    },
  })();
  await stage.push(
    first('how is it', call('weather', { place: 'Bonn' }, 'w1'), call('storm', {}, 'w2')),
    then('how is it', text('Blue.')),
  );
  const result = await soon(generateText({ model: own, prompt: 'how is it' }), 'a provider tool');
  assert.equal(result.text, 'Blue.');
  assert.equal(result.steps.length, 1);
  assert.deepEqual(seen, [{ input: { place: 'Bonn' }, threadId: result.providerMetadata.codex.threadId }]);
  const heard = JSON.stringify((await stage.asked('how is it')).at(-1).input);
  assert.match(heard, /sky/);
  assert.match(heard, /no umbrella/);
});

test('a provider tool that takes too long is given up', async () => {
  const own = stage.provider({
    toolTimeoutMs: 200,
    tools: { slow: { inputSchema: { type: 'object', properties: {} }, execute: () => new Promise(() => undefined) } },
  })();
  await stage.push(first('be slow', call('slow', {}, 'slow1')), then('be slow', text('Too slow.')));
  const result = await soon(generateText({ model: own, prompt: 'be slow' }), 'a slow tool');
  assert.equal(result.text, 'Too slow.');
});

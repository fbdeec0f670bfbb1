// A real Codex on a scripted model, and providers whose daemon runs on it.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { after } from 'node:test';

import { createCodex } from '@bindery/ai-sdk';

const program = process.env.BINDERY_STAGE;
if (!program) throw new Error('BINDERY_STAGE must name the example `stage` of bindery-testkit');

/** Starts both; they end with the tests of this file. */
export async function startStage(options = {}) {
  const child = spawn(program, ['--lines'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let last = Promise.resolve();
  const tell = (line) => {
    last = last.then(async () => {
      child.stdin.write(`${JSON.stringify(line)}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error('the stage ended');
      const answer = JSON.parse(value);
      if (answer.error) throw new Error(answer.error);
      return answer;
    });
    return last;
  };
  const { codex, project, home, env } = await tell({ script: { replies: [] }, options });
  // The daemon has our environment, and Codex the daemon's.
  Object.assign(process.env, env);
  const providers = [];
  const shutdown = () => Promise.all(providers.map((provider) => provider.shutdown()));
  const end = async () => {
    await shutdown();
    child.stdin.end();
    await new Promise((resolve) => child.once('close', resolve));
  };
  after(end);
  return {
    codex,
    project,
    home,
    end,
    /** Ends the daemon: all its providers are shut down. */
    shutdown,
    /** What must be over before the stage ends. */
    before: (shutdown) => providers.push({ shutdown }),
    /** A provider on this Codex; threads run in its project. */
    provider(settings = {}) {
      const thread = { cwd: project, ...settings.thread };
      const provider = createCodex({ codex, ...settings, thread });
      providers.push(provider);
      return provider;
    },
    /** Adds replies of the model. */
    push: (...replies) => tell({ push: replies }),
    /** Lets one reply through a gate. */
    open: (gate) => tell({ open: gate }),
    /** Waits until replies have reached a gate so many times. */
    reached: (gate, count = 1) => tell({ gate: [gate, count] }),
    /** Waits until so many requests were left by Codex before their end. */
    hungUp: (count) => tell({ hangUps: count }),
    /** What Codex asked of the model so far, the requests that contain this text. */
    async asked(text) {
      const { bodies } = await tell({ bodies: true });
      return bodies.filter((body) => JSON.stringify(body.input).includes(text));
    },
  };
}

/** A reply to requests whose last user message has this text. */
export const reply = (user, ...steps) => ({ when: { user }, steps });
/** The reply once a tool has answered. */
export const then = (user, ...steps) => ({ when: { user, after_tool: true }, steps });
/** The reply before a tool has answered. */
export const first = (user, ...steps) => ({ when: { user, after_tool: false }, steps });

export const text = (words, chunk = 0) => ({ type: 'text', text: words, chunk });
export const begin = (words) => ({ type: 'begin', text: words });
export const reasoning = (...summary) => ({ type: 'reasoning', summary });
export const call = (name, args, id) => ({ type: 'call', name, arguments: args, call_id: id });
export const exec = (cmd, id, more = {}) => call('exec_command', { cmd, ...more }, id);
export const patch = (body, id) => ({ type: 'custom_call', name: 'apply_patch', input: body, call_id: id });
export const usage = (input, cached, output, thought) => ({
  type: 'usage', input, cached, output, reasoning: thought,
});
export const gate = (name) => ({ type: 'gate', name });
export const status = (code, message) => ({
  type: 'status', status: code, body: { error: { type: 'invalid_request_error', message } },
});
export const cut = { type: 'cut' };
export const silence = { type: 'silence' };

/** A patch that adds a file. */
export const added = (path, line) => `*** Begin Patch\n*** Add File: ${path}\n+${line}\n*** End Patch\n`;

/** Everything of a stream, in order. */
export async function all(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

/** A promise that must settle; a hang fails with these words. */
export async function soon(promise, words, ms = 60_000) {
  let timer;
  const over = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs: ${words}`)), ms);
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks again until it holds. */
export async function until(holds, words, ms = 60_000) {
  for (const start = Date.now(); Date.now() - start < ms; ) {
    const value = await holds();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`in vain: ${words}`);
}

// The Node side of `cargo xtask bench ai-sdk`: a line names a variant, a line of JSON answers.
// Every provider has a Codex home of its own; BENCH names them, and where Codex is.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { Codex } from '@openai/codex-sdk';
import { generateText, streamText } from 'ai';
import { createCodexAppServer } from 'ai-sdk-provider-codex-cli';
import { createCodex } from '@bindery/ai-sdk';

const { codex, question, stages } = JSON.parse(process.env.BENCH);
const MODEL = 'gpt-5.5';

const ours = createCodex({
  codex,
  codexHome: stages.ours.env.CODEX_HOME,
  thread: { cwd: stages.ours.project },
});
const cli = createCodexAppServer({
  defaultSettings: { codexPath: codex, cwd: stages.cli.project, env: stages.cli.env, logger: false, sandboxPolicy: 'danger-full-access', approvalPolicy: 'never' },
});
const sdk = new Codex({ codexPathOverride: codex, env: stages.sdk.env });

/** First text and finish of a call of the SDK. */
async function streamed(model, more = {}) {
  const start = performance.now();
  const result = streamText({ model, prompt: question, maxRetries: 0, onError: ({ error }) => console.error(error), ...more });
  let [text, said] = [0, ''];
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw part.error;
    if (part.type !== 'text-delta') continue;
    text ||= performance.now() - start;
    said += part.text;
  }
  const finish = performance.now() - start;
  if (said === '') throw new Error('nothing was said');
  return { text, finish, metadata: await result.providerMetadata };
}

/** The answer in one piece. */
async function generated(model) {
  const start = performance.now();
  const { text } = await generateText({ model, prompt: question, maxRetries: 0 });
  const finish = performance.now() - start;
  if (text === '') throw new Error('nothing was said');
  return { text: finish, finish };
}

/** The same with the agent's own SDK, which starts a process for every turn. */
async function executed() {
  const start = performance.now();
  const thread = sdk.startThread({ workingDirectory: stages.sdk.project, skipGitRepoCheck: true });
  const { events } = await thread.runStreamed(question);
  let text = 0;
  for await (const event of events) {
    if (event.type === 'item.completed' && event.item.type === 'agent_message') text ||= performance.now() - start;
    if (event.type === 'turn.failed' || event.type === 'error') throw new Error(JSON.stringify(event));
  }
  return { text, finish: performance.now() - start };
}

let open;
let fresh = 0;
const variants = {
  // Settings that nobody used before: there is no spare thread for them.
  'ours-new': () => streamed(ours(MODEL), { providerOptions: { codex: { developerInstructions: `Be brief. ${fresh++}` } } }),
  'ours-warm': () => streamed(ours(MODEL)),
  // The same with its history in Codex's older form.
  'ours-older': () => streamed(ours(MODEL), { providerOptions: { codex: { threadExtra: { historyMode: 'legacy' } } } }),
  'ours-generate': () => generated(ours(MODEL)),
  // Without a session file, which is how ai-sdk-provider-codex-cli has it.
  'ours-ephemeral': () => streamed(ours(MODEL), { providerOptions: { codex: { ephemeral: true } } }),
  'ours-open': () => streamed(ours(MODEL), { providerOptions: { codex: { threadId: open } } }),
  cli: () => streamed(cli(MODEL)),
  sdk: executed,
};

const CROWD = 32;

const verbs = {
  async run(name) {
    if (name === 'ours-open') open ??= (await streamed(ours(MODEL))).metadata.codex.threadId;
    const before = process.cpuUsage();
    const { text, finish } = await variants[name]();
    const { user, system } = process.cpuUsage(before);
    return { text, finish, cpu: (user + system) / 1000 };
  },
  /** A thread grows with its turns; the next one is a new one. */
  async renew() {
    open = undefined;
    return {};
  },
  /** So many conversations at once: how long, and the memory of this process and all under it. */
  async crowd(name) {
    let peak = 0;
    const look = () => {
      peak = Math.max(peak, family(process.pid).reduce((sum, pid) => sum + memory(pid), 0));
    };
    const timer = setInterval(look, 50);
    const start = performance.now();
    await Promise.all(Array.from({ length: CROWD }, () => variants[name]()));
    const finish = performance.now() - start;
    look();
    clearInterval(timer);
    return { finish, mib: peak / 1024 };
  },
};

/** A process and all under it. */
function family(root) {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = new Map(pids.map((pid) => [pid, field(pid, 'PPid')]));
  const under = (pid) => pid === root || (parents.has(pid) && under(parents.get(pid)));
  return pids.filter(under);
}

/** Memory that is the process's own, in KiB. */
function memory(pid) {
  return isTwin(pid) ? 0 : field(pid, 'RssAnon') || 0;
}

/** Whether it is about to become another program, and until then has the memory of its parent. */
function isTwin(pid) {
  const parent = field(pid, 'PPid');
  const same = (name) => field(pid, name) === field(parent, name);
  try {
    return same('VmSize') && same('VmData') && program(pid) === program(parent);
  } catch {
    return false;
  }
}

function program(pid) {
  return readlinkSync(`/proc/${pid}/exe`);
}

function field(pid, name) {
  try {
    const found = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return found ? Number(found[1]) : undefined;
  } catch {
    return undefined;
  }
}

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const [verb, name] = line.split(' ');
  console.log(JSON.stringify(await verbs[verb](name)));
}
await ours.shutdown();
process.exit();

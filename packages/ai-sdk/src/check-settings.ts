// Settings are checked before anything starts: a misspelled sandbox must not become no sandbox.

import { InvalidArgumentError } from '@ai-sdk/provider';

/** What a value must be. */
interface Rule {
  want: string;
  fits: (value: unknown) => boolean;
  /** The value is never shown. */
  secret?: true;
  /** What is wrong inside a value that fits. */
  inside?: (value: unknown, path: string) => void;
}

type Rules = Readonly<Record<string, Rule>>;

const TEXT: Rule = { want: 'a text that is not empty', fits: (value) => typeof value === 'string' && value !== '' };
const FLAG: Rule = { want: 'true or false', fits: (value) => typeof value === 'boolean' };
const CALLBACK: Rule = { want: 'a function', fits: (value) => typeof value === 'function' };
const OBJECT: Rule = { want: 'an object', fits: isObject };
const MILLISECONDS: Rule = {
  want: 'a whole number of milliseconds',
  fits: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
};
const SECRET: Rule = {
  want: 'a text of at least 32 characters',
  secret: true,
  fits: (value) => typeof value === 'string' && value.length >= 32,
};
const TEXTS: Rule = {
  want: 'an object whose values are texts',
  fits: (value) => isObject(value) && Object.values(value).every((text) => typeof text === 'string'),
};

function oneOf(...words: string[]): Rule {
  return {
    want: `one of ${words.map((word) => `'${word}'`).join(', ')}`,
    fits: (value) => words.some((word) => word === value),
  };
}

/** A rule, or a function. */
const orCallback = (rule: Rule): Rule => ({
  want: `${rule.want}, or a function`,
  fits: (value) => typeof value === 'function' || rule.fits(value),
});

function object(rules: Rules): Rule {
  return { ...OBJECT, inside: (value, path) => check(value, rules, path) };
}

const GRANULAR: Rules = {
  sandbox_approval: FLAG,
  rules: FLAG,
  skill_approval: FLAG,
  request_permissions: FLAG,
  mcp_elicitations: FLAG,
};

const POLICY_WORDS = oneOf('untrusted', 'on-request', 'on-failure', 'never');

const APPROVAL_POLICY: Rule = {
  want: `${POLICY_WORDS.want}, or { granular: … }`,
  fits: (value) => POLICY_WORDS.fits(value) || (isObject(value) && isObject(value['granular'])),
  inside: (value, path) => {
    if (isObject(value)) check(value, { granular: object(GRANULAR) }, path);
  },
};

const SANDBOX = oneOf('read-only', 'workspace-write', 'danger-full-access');

const ROOTS: Rule = {
  want: 'a list of paths',
  fits: (value) => Array.isArray(value) && value.every((path) => typeof path === 'string' && path !== ''),
};

const SANDBOX_POLICIES: Readonly<Record<string, Rules>> = {
  dangerFullAccess: {},
  readOnly: { networkAccess: FLAG },
  externalSandbox: { networkAccess: oneOf('restricted', 'enabled') },
  workspaceWrite: { writableRoots: ROOTS, networkAccess: FLAG, excludeTmpdirEnvVar: FLAG, excludeSlashTmp: FLAG },
};

const SANDBOX_POLICY: Rule = {
  ...OBJECT,
  inside: (value, path) => {
    const type = oneOf(...Object.keys(SANDBOX_POLICIES));
    const given = (value as { type?: unknown }).type;
    if (!type.fits(given)) refuse(`${path}.type`, `\`${path}.type\` must be ${type.want}, not ${shown(given)}`);
    check(value, { type, ...SANDBOX_POLICIES[given as string] }, path);
  },
};

/** Codex's own names of what guards a thread; it passes over a misspelled one in silence. */
const SAFE_CONFIG: Rules = {
  sandbox_mode: SANDBOX,
  sandbox_workspace_write: OBJECT,
  approval_policy: APPROVAL_POLICY,
  approvals_reviewer: TEXT,
};

const CONFIG: Rule = {
  ...OBJECT,
  inside: (value, path) => {
    for (const [name, inner] of Object.entries(value as object)) {
      const [first = ''] = name.split('.');
      const meant = Object.keys(SAFE_CONFIG).find((known) => plain(known) === plain(first)) ?? guardOf(first);
      if (meant !== undefined && !Object.hasOwn(SAFE_CONFIG, first)) {
        refuse(`${path}.${name}`, `Codex knows no \`${path}.${name}\`; did you mean \`${path}.${snake(meant)}\`?`);
      }
      const rule = Object.hasOwn(SAFE_CONFIG, name) ? SAFE_CONFIG[name] : undefined;
      if (rule !== undefined) checkOne(inner, rule, `${path}.${name}`);
    }
  },
};

/** What guards a thread, under the names that it has here and the ones it is taken for. */
const GUARDS = ['sandbox', 'sandboxPolicy', 'approvalPolicy', 'approvalsReviewer', 'sandboxMode'];

/** Parameters of Codex's that have a name here: given twice, one of both would be lost. */
const OWN_PARAMETERS = [
  ...GUARDS,
  ...['model', 'modelProvider', 'cwd', 'baseInstructions', 'developerInstructions', 'config', 'ephemeral', 'dynamicTools'],
  ...['threadId', 'lastTurnId', 'excludeTurns', 'history', 'effort', 'summary', 'outputSchema', 'input'],
];

const EXTRA: Rule = {
  ...OBJECT,
  inside: (value, path) => {
    for (const name of Object.keys(value as object)) {
      if (OWN_PARAMETERS.includes(name) || guardOf(name) !== undefined) {
        const meant = guardOf(name) ?? name;
        refuse(`${path}.${name}`, `\`${name}\` does not go into \`${path}\`; the setting is \`${meant === 'sandboxMode' ? 'sandbox' : meant}\``);
      }
    }
  },
};

const SUMMARY = oneOf('auto', 'concise', 'detailed', 'none');

/** Of a thread and of a call; all of it goes to the daemon. */
const THREAD: Rules = {
  cwd: TEXT,
  approvalPolicy: APPROVAL_POLICY,
  approvalsReviewer: TEXT,
  sandbox: SANDBOX,
  sandboxPolicy: SANDBOX_POLICY,
  ephemeral: FLAG,
  effort: TEXT,
  reasoningEffort: TEXT,
  summary: SUMMARY,
  reasoningSummary: SUMMARY,
  modelProvider: TEXT,
  developerInstructions: TEXT,
  baseInstructions: TEXT,
  instructions: oneOf('developer', 'base'),
  config: CONFIG,
  threadExtra: EXTRA,
  turnExtra: EXTRA,
  threadId: TEXT,
  fork: FLAG,
  model: TEXT,
  parseMentions: FLAG,
  imageDetail: oneOf('auto', 'low', 'high', 'original'),
};

const CALLBACKS: Rules = {
  onCommandApproval: CALLBACK,
  onFileChangeApproval: CALLBACK,
  onPermissions: CALLBACK,
  onToolUserInput: CALLBACK,
  onElicitation: CALLBACK,
  onSession: CALLBACK,
  onCallbackError: CALLBACK,
};

const TRUST: Rules = { owner: TEXT, allowLocalFiles: FLAG };

const TOOLS: Rule = {
  ...OBJECT,
  inside: (value, path) => {
    for (const [name, tool] of Object.entries(value as object)) {
      const { inputSchema, execute } = (isObject(tool) ? tool : {}) as { inputSchema?: unknown; execute?: unknown };
      if (!isObject(inputSchema) || typeof execute !== 'function') {
        refuse(`${path}.${name}`, `\`${path}.${name}\` needs an \`inputSchema\` and a function \`execute\``);
      }
    }
  },
};

const SETTINGS: Rules = {
  defaultModel: TEXT,
  thread: object(THREAD),
  specification: oneOf('v3', 'v4'),
  server: object({ url: TEXT, token: TEXT }),
  bindery: TEXT,
  codex: TEXT,
  appServer: object({ url: TEXT, token: TEXT }),
  backend: oneOf('codex', 'engine'),
  codexHome: TEXT,
  env: TEXTS,
  tools: TOOLS,
  toolTimeoutMs: MILLISECONDS,
  answerTimeoutMs: MILLISECONDS,
  interruptTimeoutMs: MILLISECONDS,
  idleTimeoutMs: MILLISECONDS,
  turnTimeoutMs: MILLISECONDS,
  compaction: orCallback(oneOf('always', 'never')),
  strictCompaction: FLAG,
  threadSecret: SECRET,
  authorizeThread: CALLBACK,
  ...TRUST,
  ...CALLBACKS,
};

/** Names that others use for a setting, without their case and signs. */
const TAKEN_FOR: Readonly<Record<string, string>> = {
  sandboxmode: 'sandbox',
  defaultsettings: 'thread',
  defaultthreadsettings: 'thread',
  defaultturnsettings: 'thread',
  threadsettings: 'thread',
  turnsettings: 'thread',
  turn: 'thread',
  approvalmode: 'approvalPolicy',
  askforapproval: 'approvalPolicy',
  workingdirectory: 'cwd',
  workdir: 'cwd',
  userid: 'owner',
  user: 'owner',
};

/** Throws an `InvalidArgumentError` where a provider's or a model's settings are not as they must be. */
export function checkSettings(settings: unknown, place: string, more: readonly string[] = []): void {
  if (settings === undefined) return;
  const added = Object.fromEntries(more.map((name) => [name, TEXT]));
  check(settings, { ...SETTINGS, ...added }, place, 'thread');
}

/** The same for the options of one call, under each name that they are read by. */
export function checkCallOptions(providerOptions: unknown): void {
  if (!isObject(providerOptions)) return;
  for (const key of OPTION_KEYS) {
    const own = providerOptions[key];
    if (own !== undefined && own !== null) check(own, { ...THREAD, ...TRUST, ...CALLBACKS }, `providerOptions.${key}`);
  }
}

/** Where options and metadata of ours are read; the daemon has the same list. */
export const OPTION_KEYS = ['codex', 'bindery', '@janole/ai-sdk-provider-codex-asp'] as const;

/** Refuses names that are not among these. */
export function checkNames(settings: unknown, names: readonly string[], place: string): void {
  if (settings === undefined) return;
  const anything: Rule = { want: 'anything', fits: () => true };
  check(settings, Object.fromEntries(names.map((name) => [name, anything])), place);
}

function check(value: unknown, rules: Rules, path: string, nested?: 'thread'): void {
  if (!isObject(value)) refuse(path, `\`${path}\` must be an object, not ${shown(value)}`);
  for (const [name, inner] of Object.entries(value)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) {
      const meant = nearest(name, rules, nested);
      refuse(`${path}.${name}`, `unknown setting \`${path}.${name}\`${meant === undefined ? '' : `; did you mean \`${meant}\`?`}`);
    }
    // Not given. A guard that was set to nothing is a mistake all the same.
    if (inner === undefined || (inner === null && !GUARDS.includes(name))) continue;
    checkOne(inner, rule, `${path}.${name}`);
  }
}

function checkOne(value: unknown, rule: Rule, path: string): void {
  if (!rule.fits(value)) {
    const given = rule.secret === true ? '' : `, not ${shown(value)}`;
    refuse(path, `\`${path}\` must be ${rule.want}${given}`);
  }
  rule.inside?.(value, path);
}

function refuse(argument: string, message: string): never {
  throw new InvalidArgumentError({ argument, message });
}

/** Values may be secret, so only words are shown, and short ones. */
function shown(value: unknown): string {
  if (typeof value === 'string') return /^[\w-]{0,24}$/.test(value) ? `'${value}'` : 'this text';
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return String(value);
  return Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

function snake(name: string): string {
  if (name === 'sandbox' || name === 'sandboxPolicy') return 'sandbox_mode';
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The guard that a name is, or is a misspelling of. */
function guardOf(name: string): string | undefined {
  return GUARDS.find((guard) => distance(plain(name), plain(guard)) <= (guard.length > 8 ? 2 : 1));
}

function nearest(name: string, rules: Rules, nested?: 'thread'): string | undefined {
  const all = Object.keys(rules);
  const below = nested === undefined ? [] : Object.keys(THREAD).filter((known) => !all.includes(known));
  const taken = TAKEN_FOR[plain(name)];
  const known = [...all, ...below];
  const scored = known.map((one) => ({ one, far: one === taken ? 0 : distance(plain(name), plain(one)) }));
  const best = scored.reduce((a, b) => (b.far < a.far ? b : a));
  if (best.far > Math.max(2, Math.floor(name.length / 3))) return undefined;
  return below.includes(best.one) ? `thread.${best.one}` : best.one;
}

/** How many letters must be changed, added or taken away. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [at, letter] of Array.from(from).entries()) {
    const next = [at + 1];
    for (const [other, wanted] of Array.from(to).entries()) {
      const changed = (row[other] ?? 0) + (letter === wanted ? 0 : 1);
      next.push(Math.min(changed, (row[other + 1] ?? 0) + 1, (next[other] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

// The other way round: Codex as a tool in another model's loop.

import { checkSettings } from './check-settings.js';
import { BinderyError } from './errors.js';
import { Lease } from './lease.js';
import { CodexLanguageModel } from './model.js';
import { installedSpecification } from './major.js';
import { processWide } from './process-wide.js';
import type { CodexSettings, ThreadSettings } from './settings.js';
import { isAuthorized, ThreadMarks } from './thread-marks.js';
import { eventsToProgress, type CodexRunProgress } from './progress.js';

export type { CodexRunProgress } from './progress.js';

/** Settings of the tool. */
export interface CodexRunOptions extends CodexSettings {
  /** The folder that tasks are done in; the model cannot choose another. */
  cwd: string;
  /** The model; else what Codex is set to. */
  model?: string;
  /** What the other model is told of the tool. */
  description?: string;
}

/** A tool has nobody to ask later: what no callback answers is refused, and Codex goes on. */
const REFUSALS = {
  onCommandApproval: () => 'decline',
  onFileChangeApproval: () => 'decline',
  onPermissions: () => ({}),
  onToolUserInput: () => ({}),
  onElicitation: () => ({ action: 'decline' }),
} satisfies CodexSettings;

const SCHEMA = {
  type: 'object',
  properties: {
    task: { type: 'string', description: 'What is to be done, in full: Codex sees nothing else.' },
    threadId: { type: 'string', description: 'Goes on with an earlier task, by the id it returned.' },
  },
  required: ['task'],
  additionalProperties: false,
} as const;

const SCHEMA_SYMBOL = Symbol.for('vercel.ai.schema');

/** What a model hands over. */
export interface CodexRunInput {
  /** What is to be done, in full. */
  task: string;
  /** Goes on with an earlier task. */
  threadId?: string;
}

/** The tool, in a shape that both majors of the SDK take. */
export interface CodexRunTool {
  /** What the other model is told of it. */
  description: string;
  /** What it takes, as the installed SDK wants it. */
  // The SDK's own schema type carries a symbol of the installed major, which cannot be named here.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  inputSchema: any;
  /** Hands the task over, and yields how it stands. */
  execute: (input: CodexRunInput, options?: { abortSignal?: AbortSignal }) => AsyncGenerator<CodexRunProgress>;
}

/** A tool for `generateText` and `streamText`: hands a task to Codex and yields how it stands. */
export function codexRun(options: CodexRunOptions): CodexRunTool {
  checkSettings(options, 'codexRun', ['cwd', 'model', 'description']);
  const { cwd, model, description, ...settings } = options;
  const thread: ThreadSettings = { ...settings.thread, cwd };
  return {
    description: description ?? 'Hands a coding task to Codex, which works in the project folder.',
    inputSchema: {
      [SCHEMA_SYMBOL]: true as const,
      jsonSchema: SCHEMA,
      validate: (value: unknown) => validated(value),
    },
    async *execute({ task, threadId }, { abortSignal } = {}) {
      const specification = settings.specification ?? installedSpecification();
      const own = { ...REFUSALS, ...settings, thread };
      const threads = new RunThreads(own);
      if (threadId !== undefined) await threads.check(threadId);
      // The daemon stays for the next task; a provider that is shut down while none runs ends it.
      const lease = new Lease();
      try {
        const codex = new CodexLanguageModel(model ?? 'default', own, specification, lease);
        const { stream } = await codex.doStream({
          prompt: [{ role: 'user', content: [{ type: 'text', text: task }] }],
          ...(abortSignal === undefined ? {} : { abortSignal }),
          ...(threadId === undefined ? {} : { providerOptions: { codex: { threadId } } }),
        });
        for await (const progress of eventsToProgress(stream)) {
          if (progress.threadId !== undefined) threads.remember(progress.threadId);
          yield progress;
        }
      } finally {
        lease.leave();
      }
    },
  };
}

/** How many threads of tasks are remembered; the oldest is forgotten first. */
const MOST_THREADS = 10_000;

/** The model says which task to go on with, and it can be talked into anything: only tasks of this tool count. */
class RunThreads {
  readonly #seals = processWide('run-threads/1', () => new Set<string>());
  readonly #marks: ThreadMarks;

  constructor(readonly settings: CodexSettings) {
    this.#marks = new ThreadMarks(settings);
  }

  remember(threadId: string): void {
    const seal = this.#marks.seal(threadId);
    this.#seals.delete(seal);
    this.#seals.add(seal);
    const [oldest] = this.#seals;
    if (this.#seals.size > MOST_THREADS && oldest !== undefined) this.#seals.delete(oldest);
  }

  async check(threadId: string): Promise<void> {
    if (await isAuthorized(this.settings, threadId, this.#seals.has(this.#marks.seal(threadId)))) return;
    throw new BinderyError(
      'this tool started no such task',
      'thread_not_allowed',
      'Leave `threadId` out to begin a new task. Tasks of another process need `authorizeThread`.',
    );
  }
}

function validated(value: unknown): { success: true; value: CodexRunInput } | { success: false; error: Error } {
  const { task, threadId } = (value ?? {}) as Partial<CodexRunInput>;
  if (typeof task !== 'string') return { success: false, error: new TypeError('`task` must be text') };
  if (threadId !== undefined && typeof threadId !== 'string') {
    return { success: false, error: new TypeError('`threadId` must be text') };
  }
  return { success: true, value: threadId === undefined ? { task } : { task, threadId } };
}

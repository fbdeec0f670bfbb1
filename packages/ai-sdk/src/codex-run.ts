// The other way round: Codex as a tool in another model's loop.

import { Lease } from './lease.js';
import { CodexLanguageModel } from './model.js';
import { installedSpecification } from './major.js';
import type { CodexSettings, ThreadSettings } from './settings.js';
import { eventsToProgress, type CodexRunProgress } from './progress.js';

export type { CodexRunProgress } from './progress.js';

/** Settings of the tool. */
export interface CodexRunOptions extends CodexSettings {
  /** The folder that tasks are done in; the model cannot choose another. */
  cwd: string;
  model?: string;
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
  task: string;
  threadId?: string;
}

/** The tool, in a shape that both majors of the SDK take. */
export interface CodexRunTool {
  description: string;
  // The SDK's own schema type carries a symbol of the installed major, which cannot be named here.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  inputSchema: any;
  execute: (input: CodexRunInput, options?: { abortSignal?: AbortSignal }) => AsyncGenerator<CodexRunProgress>;
}

/** A tool for `generateText` and `streamText`: hands a task to Codex and yields how it stands. */
export function codexRun(options: CodexRunOptions): CodexRunTool {
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
      // The daemon stays for the next task; a provider that is shut down while none runs ends it.
      const lease = new Lease();
      try {
        const codex = new CodexLanguageModel(model ?? 'default', own, specification, lease);
        const { stream } = await codex.doStream({
          prompt: [{ role: 'user', content: [{ type: 'text', text: task }] }],
          ...(abortSignal === undefined ? {} : { abortSignal }),
          ...(threadId === undefined ? {} : { providerOptions: { codex: { threadId } } }),
        });
        yield* eventsToProgress(stream);
      } finally {
        lease.leave();
      }
    },
  };
}

function validated(value: unknown): { success: true; value: CodexRunInput } | { success: false; error: Error } {
  const { task, threadId } = (value ?? {}) as Partial<CodexRunInput>;
  if (typeof task !== 'string') return { success: false, error: new TypeError('`task` must be text') };
  if (threadId !== undefined && typeof threadId !== 'string') {
    return { success: false, error: new TypeError('`threadId` must be text') };
  }
  return { success: true, value: threadId === undefined ? { task } : { task, threadId } };
}

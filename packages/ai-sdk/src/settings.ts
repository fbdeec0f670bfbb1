// What a caller may set, and what the callbacks are given.

/** What a thread and its turns run with; the same names work in `providerOptions.codex` of a call. */
export interface ThreadSettings {
  /** The folder that Codex works in. */
  cwd?: string;
  /** When Codex asks before it acts; an object has `granular` with a flag for each kind of question. */
  approvalPolicy?: 'untrusted' | 'on-request' | 'on-failure' | 'never' | Record<string, unknown>;
  /** Who answers Codex's questions, in Codex's own words: `user`, `auto_review`. */
  approvalsReviewer?: string;
  /**
   * What commands may do. Where neither this nor `sandboxPolicy` is set, Codex's own configuration decides, which may
   * be full access.
   */
  sandbox?: 'read-only' | 'workspace-write' | 'danger-full-access';
  /**
   * The full policy of a turn, in Codex's own words: `{ type: 'readOnly' | 'workspaceWrite' | 'externalSandbox' |
   * 'dangerFullAccess', … }`.
   */
  sandboxPolicy?: Record<string, unknown>;
  /** Leave no session file behind. */
  ephemeral?: boolean;
  /** How much the model thinks, in Codex's own words: `low`, `medium`, `high` and more, by model. */
  effort?: string;
  /** How much of the model's thinking is told. */
  summary?: 'auto' | 'concise' | 'detailed' | 'none';
  /** The provider of models, as Codex's settings name it. */
  modelProvider?: string;
  /** Added to Codex's own instructions. */
  developerInstructions?: string;
  /** Instead of Codex's own instructions. */
  baseInstructions?: string;
  /** Where system messages go. */
  instructions?: 'developer' | 'base';
  /** Overrides of Codex's settings, as `-c key=value` would. */
  config?: Record<string, unknown>;
  /** Any other parameter of Codex's own; one that has a setting here is refused. */
  threadExtra?: Record<string, unknown>;
  /** The same for each turn. */
  turnExtra?: Record<string, unknown>;
}

/** Options of one call, given as `providerOptions: { codex: … }`. */
export interface CallSettings extends ThreadSettings {
  /** As in the provider's settings. */
  owner?: string;
  /** As in the provider's settings. */
  allowLocalFiles?: boolean;
  /** Go on with this thread. It is trusted: never take it from a client without a check of your own. */
  threadId?: string;
  /** Go on with a copy of the thread. */
  fork?: boolean;
  /** The model of this call, instead of that which the provider was asked for. */
  model?: string;
  /** Read `@path` and `$skill` in the text. */
  parseMentions?: boolean;
  /** How closely images are looked at. */
  imageDetail?: 'auto' | 'high' | 'original';
}

/** Settings of a provider. */
export interface CodexSettings {
  /** Used where a call names no model. */
  defaultModel?: string;
  /** What threads run with, where the call does not say. */
  thread?: ThreadSettings;
  /** The shape of the model: by default what the installed `ai` wants. */
  specification?: 'v3' | 'v4';
  /** A `bindery serve` that runs already. Without it the provider starts one of its own. */
  server?: {
    /** Its address; it may have a path, as behind a proxy. */
    url: string;
    /** What lets a caller in. */
    token: string;
  };
  /** The program `bindery`; else `BINDERY_BIN`, the platform package, `PATH`. */
  bindery?: string;
  /** The program `codex`; else `bindery` looks for it. */
  codex?: string;
  /**
   * A `codex app-server` that listens already (`ws://`, `wss://`, `unix://`), used instead of one of our own.
   * Folders and files are then those of its machine.
   */
  appServer?: {
    /** Its address. */
    url: string;
    /** What lets a caller in. */
    token?: string;
  };
  /** Codex, or Bindery's own engine; by default Codex where it is found. */
  backend?: 'codex' | 'engine';
  /** Codex's home for these threads. */
  codexHome?: string;
  /** Added to the environment of Codex. */
  env?: Record<string, string>;
  /** Tools that run here and that Codex may call, besides those of a call. */
  tools?: Record<string, ProviderTool>;
  /** How long one of `tools` may take; 30 s. */
  toolTimeoutMs?: number;
  /** How long a question may wait for its answer, from a callback or natively; then it is "no". 24 h. */
  answerTimeoutMs?: number;
  /** How long an interrupted turn may take to end. */
  interruptTimeoutMs?: number;
  /** How long a turn may show no progress. */
  idleTimeoutMs?: number;
  /** How long a turn may take. */
  turnTimeoutMs?: number;
  /** Compact a thread when it is resumed; a function is asked before every call. */
  compaction?: 'always' | 'never' | ((call: { prompt: unknown }) => Awaitable<boolean>);
  /** A compaction that fails, fails the call. */
  strictCompaction?: boolean;
  /**
   * Whose conversation it is, for example the id of the user who is signed in. A thread that was started for one
   * owner is never used for another, even if the messages name it. Set it per request:
   * `codex(undefined, { owner: userId })`.
   */
  owner?: string;
  /**
   * The key that thread ids in messages are signed with, at least 32 characters; else `BINDERY_THREAD_SECRET`, else a
   * random key of this process. Set it where several processes serve the same conversations, or where they should go
   * on in their threads after a restart.
   */
  threadSecret?: string;
  /**
   * Decides instead of the signature whether a thread that the messages name may be used. Only `true` allows it; what
   * it throws fails the call.
   */
  authorizeThread?: (thread: { threadId: string; signed: boolean; owner?: string }) => Awaitable<boolean>;
  /**
   * Lets messages name files of this machine (`file:` addresses, `localPath`, mentions, skills by path). Only for
   * messages that nobody but your own code writes.
   */
  allowLocalFiles?: boolean;
  /**
   * Who answers Codex's questions. A question without a callback ends the step with a
   * `tool-approval-request`, and waits for its `tool-approval-response`.
   */
  onCommandApproval?: (request: CommandApproval) => Awaitable<ApprovalDecision>;
  /** May files be changed? */
  onFileChangeApproval?: (request: FileChangeApproval) => Awaitable<ApprovalDecision>;
  /** May Codex have more rights? */
  onPermissions?: (request: PermissionsRequest) => Awaitable<PermissionsAnswer>;
  /** What Codex asks the user: an answer, or a list of them, for each question's `id`. */
  onToolUserInput?: (request: UserInputRequest) => Awaitable<Record<string, string | string[]>>;
  /** What an MCP server asks; with `toolParams`, whether a tool of one may run. */
  onElicitation?: (request: ElicitationRequest) => Awaitable<ElicitationAnswer>;
  /** Told of every turn that begins, with handles to steer and stop it. */
  onSession?: (session: CodexSession) => void;
  /** Told what went wrong in a callback or a tool; the answer was "no" then. */
  onCallbackError?: (error: unknown) => void;
}

/** A value, or the promise of one. */
export type Awaitable<T> = T | Promise<T>;

/** Yes or no, and for how long. Anything else means no. */
export type ApprovalDecision =
  | 'accept'
  | 'acceptForSession'
  | {
      /** Yes, and from now on to every command that begins with these words. */
      acceptWithRule: string[];
    }
  | 'decline'
  | 'cancel'
  | boolean;

/** What every question is told with. */
interface Asked {
  /** The question's name. */
  id: string;
  /** The thread that asks. */
  threadId: string;
  /** The turn that asks. */
  turnId: string;
  /** The call that it is about, as in the stream's `toolCallId`. */
  callId: string;
  /** Why, in Codex's words. */
  reason?: string | null;
}

/** May a command run? */
export interface CommandApproval extends Asked {
  /** Exactly what would run. */
  command: string;
  /** Where it would run. */
  cwd: string;
  /** It is typed into a running command instead of being started. */
  intoRunning: boolean;
  /** A person must decide, for this once: an answer for the session or by rule is refused. */
  personRequired?: boolean;
  /** The rule that "always" would save. */
  rule?: string[] | null;
}

/** May files be changed? */
export interface FileChangeApproval extends Asked {
  /** The changes, file by file. */
  changes: {
    /** The file. */
    path: string;
    /** What happens to it, in Codex's own words. */
    kind: unknown;
    /** How. */
    diff: string;
  }[];
  /** The folder that yes would open for writing, for the session. */
  grantRoot?: string | null;
}

/** May Codex have more rights? */
export interface PermissionsRequest extends Asked {
  /** What is wanted, in Codex's own words. */
  permissions: unknown;
  /** The folder that it is about. */
  cwd?: string | null;
}

/** What is granted, at most what was wanted; nothing where it is left out. */
export interface PermissionsAnswer {
  /** What is granted. */
  granted?: unknown;
  /** Until the thread ends, and not for this turn alone. */
  forSession?: boolean;
}

/** What Codex asks the user. */
export interface UserInputRequest extends Asked {
  /** The questions. */
  questions: {
    /** The key of its answer. */
    id: string;
    /** In a word. */
    header?: string;
    /** In full. */
    question?: string;
    /** Answers to choose from, each with a `label`. */
    options?: unknown[];
  }[];
}

/** What an MCP server asks. */
export interface ElicitationRequest extends Asked {
  /** The MCP server. */
  server: string;
  /** What it asks, in words. */
  message: string;
  /** How it wants to be answered: `form`, `url`. */
  mode: string;
  /** JSON Schema of the form. */
  schema?: unknown;
  /** It is the approval of an MCP tool call with these arguments. */
  toolParams?: unknown;
  /** How long such an approval may be remembered. */
  persist?: ('session' | 'always')[];
}

/** The answer to it. */
export interface ElicitationAnswer {
  /** Yes, no, or no answer at all. */
  action: 'accept' | 'decline' | 'cancel';
  /** The filled form. */
  content?: unknown;
  /** Remember the approval of a tool's call; one of the words that the question offers. */
  persist?: 'session' | 'always';
}

/** A tool of the provider's settings. */
export interface ProviderTool {
  /** What it is for. */
  description?: string;
  /** JSON Schema. */
  inputSchema: Record<string, unknown>;
  /** Does the work; what it returns is told to Codex as text, what it throws as a failure. */
  execute: (input: unknown, context: ToolContext) => unknown;
}

/** What a tool of the settings is told besides its input. */
export interface ToolContext {
  /** The call, as in the stream's `toolCallId`. */
  callId: string;
  /** The thread that the call belongs to. */
  threadId: string;
  /** The turn that the call belongs to. */
  turnId: string;
  /** The tool's name. */
  toolName: string;
  /** Aborted when the turn is over or the tool takes too long. */
  signal: AbortSignal;
}

/** A running turn. */
export interface CodexSession {
  /** The thread. */
  threadId: string;
  /** The turn. */
  turnId: string;
  /** Whether the call still runs. */
  isActive: () => boolean;
  /** Says something to the turn while it runs: text, or parts as a user message of the SDK has them. */
  steer: (input: string | Record<string, unknown>[]) => Promise<void>;
  /** Stops the turn; its stream ends as interrupted. */
  interrupt: () => Promise<void>;
}

/** A model that Codex offers. */
export interface ModelInfo {
  /** Its name in calls. */
  id: string;
  /** Its name for people. */
  name: string;
  /** What it is good at. */
  description?: string;
  /** Used when none is named. */
  isDefault: boolean;
  /** What it can be shown: `text`, `image`; empty where Codex does not say. */
  inputModalities?: string[];
  /** What else Codex says of it. */
  [more: string]: unknown;
}

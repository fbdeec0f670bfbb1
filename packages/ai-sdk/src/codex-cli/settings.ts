// Settings in the words of `ai-sdk-provider-codex-cli`, of both its modes.

import type { AppServerAnswers, AppServerDecision, AppServerElicited } from '../migrate-asks.js';
import type { AppServerSession } from '../migrate-session.js';
import type { Awaitable, ThreadSettings } from '../settings.js';
import type { SdkMcpServer } from './tools.js';

/** An MCP server. */
export interface CliMcpServer {
  /** How it is reached. */
  transport: 'stdio' | 'http';
  /** Its program. */
  command?: string;
  /** The program's arguments. */
  args?: string[];
  /** Added to the program's environment. */
  env?: Record<string, string>;
  /** The folder that the program runs in. */
  cwd?: string;
  /** Its address. */
  url?: string;
  /** Sent as `Authorization: Bearer …`. */
  bearerToken?: string;
  /** The variable of Codex's environment that has the token. */
  bearerTokenEnvVar?: string;
  /** Headers of each request. */
  httpHeaders?: Record<string, string>;
  /** Headers whose values are in Codex's environment. */
  envHttpHeaders?: Record<string, string>;
  /** Whether it is used. */
  enabled?: boolean;
  /** How long it may take to start. */
  startupTimeoutSec?: number;
  /** How long a tool of its may take. */
  toolTimeoutSec?: number;
  /** The tools that are used. */
  enabledTools?: string[];
  /** The tools that are not. */
  disabledTools?: string[];
}

/** A question of Codex's in its own words. */
export interface ServerRequest {
  /** The question. */
  id: string;
  /** What is asked. */
  method: string;
  /** With what. */
  params: Record<string, unknown>;
}

/** Who answers Codex's questions. One without an answer is declined, unless `autoApprove` is set. */
export interface ServerRequests {
  /** May a command run? */
  onCommandExecutionApproval?: (request: ServerRequest) => Awaitable<{ decision: AppServerDecision } | undefined>;
  /** May files be changed? */
  onFileChangeApproval?: (request: ServerRequest) => Awaitable<{ decision: AppServerDecision } | undefined>;
  /** What an MCP server asks; also whether a tool of one may run. */
  onMcpElicitation?: (request: ServerRequest) => Awaitable<AppServerElicited | undefined>;
  /** What Codex asks the user. */
  onToolRequestUserInput?: (request: ServerRequest) => Awaitable<AppServerAnswers | undefined>;
  /** No effect here: declare tools with `tool()` of the SDK, or with `createSdkMcpServer`. */
  onDynamicToolCall?: unknown;
  /** No effect here: Codex does not ask it. */
  onSkillApproval?: unknown;
  /** No effect here: Codex keeps its own account. */
  onAuthRefresh?: unknown;
  /** No effect here: what Codex asks and nobody knows is declined. */
  onUnhandled?: unknown;
}

/** Settings of a provider or a model; most may also stand in the options of a call. */
export interface CliSettings {
  /** The program `codex`. */
  codexPath?: string;
  /** The folder that Codex works in. */
  cwd?: string;
  /** Added to the environment of Codex. */
  env?: Record<string, string>;
  /** When Codex asks (exec mode). */
  approvalMode?: 'untrusted' | 'on-failure' | 'on-request' | 'never';
  /** When Codex asks (app-server mode). */
  approvalPolicy?: 'untrusted' | 'on-failure' | 'on-request' | 'never' | Record<string, unknown>;
  /** What commands may do (exec mode). */
  sandboxMode?: NonNullable<ThreadSettings['sandbox']>;
  /** What commands may do (app-server mode), by a word or in full. */
  sandboxPolicy?: NonNullable<ThreadSettings['sandbox']> | Record<string, unknown>;
  /** `workspace-write` without questions, where nothing else is said. */
  fullAuto?: boolean;
  /** No sandbox and no questions, where nothing else is said. */
  dangerouslyBypassApprovalsAndSandbox?: boolean;
  /** Yes to everything that Codex asks and no handler answers. */
  autoApprove?: boolean;
  /** How much the model thinks. */
  reasoningEffort?: string;
  /** The same (app-server mode). */
  effort?: string;
  /** How much of its thinking is told. */
  reasoningSummary?: NonNullable<ThreadSettings['summary']>;
  /** The same (app-server mode). */
  summary?: NonNullable<ThreadSettings['summary']>;
  /** How much the model says. */
  modelVerbosity?: 'low' | 'medium' | 'high';
  /** The same, in the options of a call. */
  textVerbosity?: 'low' | 'medium' | 'high';
  /** How the model talks. */
  personality?: 'none' | 'friendly' | 'pragmatic';
  /** Instead of Codex's own instructions. */
  baseInstructions?: string;
  /** Besides Codex's own instructions. */
  developerInstructions?: string;
  /** MCP servers, and tools of your own as `createSdkMcpServer` gives them. */
  mcpServers?: Record<string, CliMcpServer | SdkMcpServer>;
  /** Overrides of Codex's settings, as `-c key=value` would. */
  configOverrides?: Record<string, unknown>;
  /** More folders that may be written to. */
  addDirs?: string[];
  /** Let the model search the web. */
  webSearch?: boolean;
  /** Whether a model goes on with the thread of its last call. */
  threadMode?: 'stateless' | 'persistent';
  /** Go on with this thread. */
  resume?: string;
  /** The same, in the options of a call. */
  threadId?: string;
  /** Pass Codex's own messages on. */
  includeRawChunks?: boolean;
  /** Who answers Codex's questions. */
  serverRequests?: ServerRequests;
  /** Told of each turn. */
  onSessionCreated?: (session: AppServerSession) => unknown;
  /** Refused: Codex's profiles are chosen when it starts. */
  profile?: string;
  /** Refused: name a provider of your Codex settings with `configOverrides: { model_provider }`. */
  oss?: boolean;
  /** Refused: take the answer from the call. */
  outputLastMessageFile?: string;
  /** No effect here. */
  verbose?: boolean;
  /** No effect here. */
  logger?: unknown;
  /** No effect here. */
  reasoningSummaryFormat?: string;
  /** No effect here. */
  rmcpClient?: boolean;
  /** No effect here: folders need no git repository. */
  skipGitRepoCheck?: boolean;
  /** No effect here. */
  color?: string;
  /** No effect here: name the program with `codexPath`. */
  allowNpx?: boolean;
  /** No effect here. */
  persistExtendedHistory?: boolean;
  /** No effect here. */
  connectionTimeoutMs?: number;
  /** No effect here. */
  requestTimeoutMs?: number;
  /** No effect here: it is how long the other package keeps an idle process. */
  idleTimeoutMs?: number;
  /** No effect here: versions since 0.100 are taken. */
  minCodexVersion?: string;
}

type Name = keyof CliSettings;

/** Without an equal here, and without harm. */
export const IGNORED: readonly Name[] = [
  'verbose', 'logger', 'reasoningSummaryFormat', 'rmcpClient', 'skipGitRepoCheck', 'color', 'allowNpx',
  'persistExtendedHistory', 'connectionTimeoutMs', 'requestTimeoutMs', 'idleTimeoutMs', 'minCodexVersion',
];

/** Without an equal here, and missed by who sets them. */
export const REFUSED: readonly Name[] = ['profile', 'oss', 'outputLastMessageFile'];

const BOTH: readonly Name[] = [
  ...IGNORED, 'codexPath', 'cwd', 'env', 'mcpServers', 'configOverrides', 'modelVerbosity', 'textVerbosity',
];

export const EXEC_NAMES: readonly Name[] = [
  ...BOTH, ...REFUSED, 'approvalMode', 'sandboxMode', 'fullAuto', 'dangerouslyBypassApprovalsAndSandbox', 'reasoningEffort',
  'reasoningSummary', 'addDirs', 'webSearch',
];

export const APP_SERVER_NAMES: readonly Name[] = [
  ...BOTH, 'approvalPolicy', 'sandboxPolicy', 'autoApprove', 'effort', 'reasoningEffort', 'summary', 'reasoningSummary',
  'personality', 'baseInstructions', 'developerInstructions', 'threadMode', 'resume', 'threadId', 'includeRawChunks',
  'serverRequests', 'onSessionCreated',
];

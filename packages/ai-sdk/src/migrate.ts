// The option names that users of `@janole/ai-sdk-provider-codex-asp` have in their code.

import { checkNames } from './check-settings.js';
import { createCodex, type CodexProvider } from './provider.js';
import { callbacksOf, type AppServerApprovals } from './migrate-asks.js';
import { sessionOf, type AppServerSession } from './migrate-session.js';
import type { Awaitable, CallSettings, CodexSettings, ProviderTool, ThreadSettings, ToolContext } from './settings.js';

/** A tool as it is declared there; `handler` and `execute` are the same. */
export interface AppServerTool {
  /** What it is for. */
  description?: string;
  /** JSON Schema of what it takes. */
  inputSchema: Record<string, unknown>;
  /** Does the work. */
  execute?: (input: unknown, context: ToolContext) => unknown;
  /** The same. */
  handler?: (input: unknown, context: ToolContext) => unknown;
}

/** The settings that are accepted; those without a meaning here are named by a warning. */
export interface CodexAppServerSettings {
  /** Used where a call names no model. */
  defaultModel?: string;
  /** What threads run with, where the call does not say. */
  defaultThreadSettings?: ThreadSettings;
  /** What turns run with, where the call does not say. */
  defaultTurnSettings?: ThreadSettings & {
    /** Used where neither the call nor `defaultModel` names one. */
    model?: string;
  };
  /** MCP servers for Codex. */
  mcpServers?: Record<string, AppServerMcp>;
  /** No effect here. */
  clientInfo?: unknown;
  /** No effect here: the protocol is negotiated. */
  experimentalApi?: boolean;
  /** The program, or a server that listens already. */
  transport?: {
    /** Which of both. */
    type?: 'stdio' | 'websocket';
    /** The program. */
    stdio?: {
      /** `codex`, or where it is. */
      command?: string;
      /** No effect here. */
      args?: string[];
      /** No effect here: threads have a folder each. */
      cwd?: string;
      /** Added to the environment of Codex. */
      env?: Record<string, string>;
    };
    /** A server that listens already. */
    websocket?: {
      /** Its address. */
      url: string;
      /** `Authorization` lets a caller in; others have no effect. */
      headers?: Record<string, string>;
    };
  };
  /** Refused: name a server that listens with `transport.websocket`. */
  transportFactory?: unknown;
  /** Compact threads that are resumed. */
  compaction?: {
    /** When; a function is asked before every call. */
    shouldCompactOnResume?: boolean | ((call: { prompt: unknown }) => Awaitable<boolean>);
    /** A compaction that fails, fails the call. */
    strict?: boolean;
  };
  /** Tools that run here, with their schemas. */
  tools?: Record<string, AppServerTool>;
  /** Tools that run here, without: Codex is told that they take any object. */
  toolHandlers?: Record<string, (input: unknown, context: ToolContext) => unknown>;
  /** How long a tool may take; 30 s. */
  toolTimeoutMs?: number;
  /** How long an interrupted turn may take to end. */
  interruptTimeoutMs?: number;
  /** Who answers Codex's questions. */
  approvals?: AppServerApprovals;
  /** No effect here. */
  debug?: unknown;
  /** No effect here: one process runs all threads. */
  persistent?: unknown;
  /** No effect here: plans are always told. */
  emitPlanUpdates?: boolean;
  /** Told of each turn, with handles to steer and stop it. */
  onSessionCreated?: (session: AppServerSession) => void;
}

/** An MCP server; Codex's own names are taken too. */
export interface AppServerMcp {
  /** What kind it is; its `command` or `url` says the same. */
  type?: 'stdio' | 'http';
  /** Sent as `Authorization: Bearer …`. */
  bearerToken?: string;
  /** Headers of each request. */
  headers?: Record<string, string>;
  [codexsOwn: string]: unknown;
}

/** Options of one call. */
export interface AppServerCallOptions extends CallSettings {
  /** Who answers the questions of this call. */
  approvals?: AppServerApprovals;
  /** Told of this call's turn. */
  onSessionCreated?: (session: AppServerSession) => void;
}

/** The key of options and metadata, under the name that the other package gives it. */
export const CODEX_PROVIDER_ID = 'codex';

/** Not needed here (one process runs all threads, the protocol is negotiated), or without an equal. */
const WITHOUT_EFFECT = ['clientInfo', 'experimentalApi', 'persistent', 'debug', 'emitPlanUpdates'] as const;
const REFUSED = ['transportFactory'] as const;

const NAMES: readonly (keyof CodexAppServerSettings)[] = [
  ...WITHOUT_EFFECT,
  ...REFUSED,
  'toolHandlers',
  'defaultModel',
  'defaultThreadSettings',
  'defaultTurnSettings',
  'mcpServers',
  'transport',
  'compaction',
  'tools',
  'toolTimeoutMs',
  'interruptTimeoutMs',
  'approvals',
  'onSessionCreated',
];

/** The provider with nothing set, under the name that the other package gives it. */
export const codexAppServer: CodexProvider = createCodex();

/** A provider from the settings of the other package. */
export function createCodexAppServer(settings: CodexAppServerSettings = {}): CodexProvider {
  checkNames(settings, NAMES, 'createCodexAppServer');
  const refused = REFUSED.filter((name) => settings[name] !== undefined);
  if (refused.length > 0) {
    throw new TypeError(
      `createCodexAppServer: no equal for ${refused.join(', ')}; name a server that listens with \`transport.websocket\``,
    );
  }
  const ignored: string[] = WITHOUT_EFFECT.filter((name) => settings[name] !== undefined);
  const { args, cwd } = settings.transport?.stdio ?? {};
  if (args !== undefined && args.join(' ') !== 'app-server --listen stdio://') ignored.push('transport.stdio.args');
  if (cwd !== undefined) ignored.push('transport.stdio.cwd');
  const headers = Object.keys(settings.transport?.websocket?.headers ?? {});
  ignored.push(...headers.filter((name) => !isToken(name)).map((name) => `transport.websocket.headers.${name}`));
  if (ignored.length > 0) {
    process.emitWarning(`no effect in @bindery/ai-sdk: ${ignored.join(', ')}`, 'BinderyWarning');
  }
  return createCodex(translated(settings));
}

/** The same, under its other name there. */
export const createCodexProvider = createCodexAppServer;

/** Options of one call, under the name that the other package gives them. */
export function codexCallOptions(options: AppServerCallOptions): { codex: ThreadSettings & JsonOnly } {
  const { approvals, onSessionCreated, ...rest } = options;
  const onSession = sessionOf(onSessionCreated);
  const own = { ...rest, ...callbacksOf(approvals), ...(onSession && { onSession }) };
  return { codex: own as ThreadSettings & JsonOnly };
}

/** What the SDK takes as provider options; callbacks among them never leave the process. */
type JsonOnly = Record<string, never>;

function translated(from: CodexAppServerSettings): CodexSettings {
  const { stdio } = from.transport ?? {};
  const { model: turnModel, ...turn } = from.defaultTurnSettings ?? {};
  const servers = Object.entries(from.mcpServers ?? {}).map(([name, server]) => [name, serverOf(server)] as const);
  const config = servers.length === 0 ? {} : { config: { mcp_servers: Object.fromEntries(servers) } };
  return given({
    defaultModel: from.defaultModel ?? turnModel,
    thread: { ...from.defaultThreadSettings, ...turn, ...config },
    codex: stdio?.command,
    env: stdio?.env,
    appServer: listeningOf(from.transport),
    tools: toolsOf({ ...handlersOf(from.toolHandlers), ...from.tools }),
    toolTimeoutMs: from.toolTimeoutMs,
    interruptTimeoutMs: from.interruptTimeoutMs,
    compaction: compactionOf(from.compaction),
    strictCompaction: from.compaction?.strict,
    ...callbacksOf(from.approvals),
    onSession: sessionOf(from.onSessionCreated),
  });
}

function compactionOf(from: CodexAppServerSettings['compaction']): CodexSettings['compaction'] {
  const due = from?.shouldCompactOnResume;
  if (due === undefined || typeof due === 'function') return due;
  return due ? 'always' : 'never';
}

/** A server is let in by a bearer token alone. */
function listeningOf(from: CodexAppServerSettings['transport']): CodexSettings['appServer'] {
  if (from?.websocket === undefined || from.type === 'stdio') return undefined;
  const { url, headers = {} } = from.websocket;
  const [, given] = Object.entries(headers).find(([name]) => isToken(name)) ?? [];
  const token = given?.replace(/^bearer\s+/i, '');
  return token === undefined ? { url } : { url, token };
}

function isToken(header: string): boolean {
  return header.toLowerCase() === 'authorization';
}

/** In the words of Codex's configuration. */
function serverOf({ bearerToken, headers, ...server }: AppServerMcp): Record<string, unknown> {
  // What kind it is shows by its `command` or `url`.
  const own = Object.fromEntries(Object.entries(server).filter(([name]) => name !== 'type'));
  const bearer = bearerToken === undefined ? {} : { Authorization: `Bearer ${bearerToken}` };
  const all = { ...headers, ...bearer };
  return Object.keys(all).length === 0 ? own : { ...own, http_headers: all };
}

/** Tools without a schema: Codex calls only what it is told of, so it is told that they take any object. */
function handlersOf(from: CodexAppServerSettings['toolHandlers'] = {}): Record<string, AppServerTool> {
  const entries = Object.entries(from).map(([name, handler]) => [name, { inputSchema: { type: 'object' }, handler }] as const);
  return Object.fromEntries(entries);
}

function toolsOf(from: Record<string, AppServerTool>): Record<string, ProviderTool> | undefined {
  if (Object.keys(from).length === 0) return undefined;
  const entries = Object.entries(from).map(([name, { execute, handler, ...rest }]) => {
    const run = execute ?? handler;
    if (run === undefined) throw new TypeError(`createCodexAppServer: tool \`${name}\` has no execute`);
    return [name, { ...rest, execute: async (input, context) => contentOf(await run(input, context)) }];
  }) as [string, ProviderTool][];
  return Object.fromEntries(entries);
}

/** Tools there answer `{ success, contentItems }`. */
function contentOf(result: unknown): unknown {
  const { success, contentItems } = (result ?? {}) as { success?: boolean; contentItems?: unknown[] };
  if (!Array.isArray(contentItems)) return result;
  if (success !== false) return contentItems;
  const texts = contentItems.map((item) => (item as { text?: string }).text ?? '');
  throw new Error(texts.join('\n') || 'the tool failed');
}

/** Leaves out what is undefined, so that defaults hold. */
function given(settings: { [K in keyof CodexSettings]: CodexSettings[K] | undefined }): CodexSettings {
  const set = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set);
}

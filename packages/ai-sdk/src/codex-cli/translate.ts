// The other package's settings in our words.

import { callbacksOf, type AppServerApprovals, type AppServerAsked } from '../migrate-asks.js';
import { sessionOf } from '../migrate-session.js';
import type { CodexSettings, ThreadSettings } from '../settings.js';
import { IGNORED, REFUSED, type CliMcpServer, type CliSettings, type ServerRequest, type ServerRequests } from './settings.js';
import { isSdkServer, toolsOf } from './tools.js';

/** Names what has no effect; throws where that would be missed. */
export function warnIgnored(settings: CliSettings): void {
  const refused = REFUSED.filter((name) => settings[name] !== undefined && settings[name] !== false);
  if (refused.length > 0) throw new TypeError(`@bindery/ai-sdk/codex-cli: no equal for ${refused.join(', ')}`);
  const silent = ['onDynamicToolCall', 'onSkillApproval', 'onAuthRefresh', 'onUnhandled'] as const;
  const ignored: string[] = [
    ...IGNORED.filter((name) => settings[name] !== undefined),
    ...silent.filter((name) => settings.serverRequests?.[name] !== undefined).map((name) => `serverRequests.${name}`),
  ];
  if (ignored.length > 0) process.emitWarning(`no effect in @bindery/ai-sdk/codex-cli: ${ignored.join(', ')}`, 'BinderyWarning');
}

/** What a thread runs with. */
export function threadOf(settings: CliSettings, isExec: boolean): ThreadSettings {
  const { sandboxPolicy: policy } = settings;
  const config = configOf(settings);
  return given({
    cwd: settings.cwd,
    approvalPolicy: policyOf(settings) ?? (isExec ? 'never' : undefined),
    sandbox: settings.sandboxMode ?? (typeof policy === 'string' ? policy : undefined) ?? (policy === undefined ? impliedSandbox(settings) : undefined),
    sandboxPolicy: typeof policy === 'object' ? policy : undefined,
    ephemeral: settings.threadMode === 'stateless' ? true : undefined,
    effort: settings.effort ?? settings.reasoningEffort,
    summary: settings.summary ?? settings.reasoningSummary,
    baseInstructions: settings.baseInstructions,
    developerInstructions: settings.developerInstructions,
    config: Object.keys(config).length === 0 ? undefined : config,
    turnExtra: settings.personality === undefined ? undefined : { personality: settings.personality },
  });
}

/** Tools that run here. */
export function ownToolsOf({ mcpServers = {} }: CliSettings): CodexSettings['tools'] {
  return toolsOf(Object.values(mcpServers).filter(isSdkServer));
}

function impliedSandbox({ fullAuto, dangerouslyBypassApprovalsAndSandbox: bypass }: CliSettings): ThreadSettings['sandbox'] {
  if (fullAuto === true) return 'workspace-write';
  return bypass === true ? 'danger-full-access' : undefined;
}

function policyOf({ approvalMode, approvalPolicy, ...settings }: CliSettings): ThreadSettings['approvalPolicy'] {
  const named = approvalPolicy ?? approvalMode;
  // Codex 0.143 has it no more, and takes the other for it.
  if (named === 'on-failure') return 'on-request';
  if (typeof named === 'object' && 'reject' in named) return { granular: inverted(named['reject'] as Record<string, boolean>) };
  return named ?? (impliedSandbox(settings) === undefined ? undefined : 'never');
}

function inverted(flags: Record<string, boolean>): Record<string, boolean> {
  return Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, !flag]));
}

function configOf({ modelVerbosity, textVerbosity, mcpServers = {}, configOverrides, addDirs, webSearch }: CliSettings): Record<string, unknown> {
  const verbosity = textVerbosity ?? modelVerbosity;
  const servers = Object.entries(mcpServers).flatMap(([name, server]) => (isSdkServer(server) ? [] : [[name, serverOf(server)] as const]));
  return {
    ...(verbosity !== undefined && { model_verbosity: verbosity }),
    ...(servers.length > 0 && { mcp_servers: Object.fromEntries(servers) }),
    ...(addDirs !== undefined && addDirs.length > 0 && { 'sandbox_workspace_write.writable_roots': addDirs }),
    ...(webSearch === true && { 'tools.web_search': true }),
    ...configOverrides,
  };
}

/** In the words of Codex's configuration. */
function serverOf(server: CliMcpServer): Record<string, unknown> {
  const { bearerToken, httpHeaders } = server;
  const headers = { ...httpHeaders, ...(bearerToken !== undefined && { Authorization: `Bearer ${bearerToken}` }) };
  return given({
    command: server.command,
    args: server.args,
    env: server.env,
    cwd: server.cwd,
    url: server.url,
    bearer_token_env_var: server.bearerTokenEnvVar,
    http_headers: Object.keys(headers).length === 0 ? undefined : headers,
    env_http_headers: server.envHttpHeaders,
    enabled: server.enabled,
    startup_timeout_sec: server.startupTimeoutSec,
    tool_timeout_sec: server.toolTimeoutSec,
    enabled_tools: server.enabledTools,
    disabled_tools: server.disabledTools,
  });
}

type Callbacks = Pick<CodexSettings, 'onCommandApproval' | 'onFileChangeApproval' | 'onToolUserInput' | 'onElicitation' | 'onSession'>;

/** Every question is answered here: by a handler, else by `autoApprove`, else with no. */
export function answersOf({ serverRequests = {}, autoApprove, onSessionCreated }: CliSettings): Callbacks {
  const session = sessionOf(onSessionCreated);
  return { ...callbacksOf(approvalsOf(serverRequests, autoApprove === true)), ...(session && { onSession: session }) };
}

function approvalsOf(handlers: ServerRequests, isApproved: boolean): AppServerApprovals {
  const decision = isApproved ? 'accept' : 'decline';
  return {
    onCommandApproval: async (request) =>
      (await handlers.onCommandExecutionApproval?.(asked(request, 'item/commandExecution/requestApproval')))?.decision ?? decision,
    onFileChangeApproval: async (request) =>
      (await handlers.onFileChangeApproval?.(asked(request, 'item/fileChange/requestApproval')))?.decision ?? decision,
    onToolUserInput: async (request) =>
      (await handlers.onToolRequestUserInput?.(asked(request, 'item/tool/requestUserInput'))) ?? {},
    onElicitation: async (request) => {
      const answer = await handlers.onMcpElicitation?.(asked(request, 'mcpServer/elicitation/request'));
      const isTool = request._meta?.codex_approval_kind === 'mcp_tool_call';
      return answer ?? { action: isTool && isApproved ? 'accept' : 'decline' };
    },
  };
}

function asked(request: AppServerAsked, method: string): ServerRequest {
  return { id: request.approvalId, method, params: { ...request } };
}

/** Leaves out what is undefined, so that defaults hold. */
function given<T extends object>(settings: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as T;
}

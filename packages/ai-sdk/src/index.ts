// The public face: a provider, its settings, its errors, and Codex as a tool of another model.

export { codex, createCodex, type CodexModel, type CodexProvider } from './provider.js';
export {
  CODEX_PROVIDER_ID,
  codexAppServer,
  createCodexAppServer,
  createCodexProvider,
  codexCallOptions,
  type AppServerCallOptions,
  type AppServerMcp,
  type AppServerTool,
  type CodexAppServerSettings,
} from './migrate.js';
export type { AppServerInput, AppServerSession } from './migrate-session.js';
export type { AppServerApprovals, AppServerElicitation } from './migrate-asks.js';
export { codexRun, type CodexRunInput, type CodexRunOptions, type CodexRunProgress, type CodexRunTool } from './codex-run.js';
export { BinderyError, type BinderyErrorCode } from './errors.js';
export type {
  ApprovalDecision,
  CallSettings,
  CodexSession,
  CodexSettings,
  CommandApproval,
  ElicitationRequest,
  ElicitationAnswer,
  FileChangeApproval,
  ModelInfo,
  PermissionsRequest,
  PermissionsAnswer,
  ProviderTool,
  ThreadSettings,
  ToolContext,
  UserInputRequest,
} from './settings.js';

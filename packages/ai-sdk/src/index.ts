// The public face: a provider, its settings, its errors, and Codex as a tool of another model.

export { codex, createCodex, type CodexModel, type CodexProvider } from './provider.js';
export {
  createCodexAppServer,
  codexCallOptions,
  type AppServerCallOptions,
  type AppServerMcp,
  type AppServerSession,
  type CodexAppServerSettings,
} from './migrate.js';
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
  UserInputRequest,
} from './settings.js';

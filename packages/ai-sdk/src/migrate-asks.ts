// Callbacks in the words of the other provider, which are Codex's own: what they are asked, what they answer.

import type {
  ApprovalDecision,
  Awaitable,
  CodexSettings,
  CommandApproval,
  ElicitationAnswer,
  FileChangeApproval,
  UserInputRequest,
} from './settings.js';

/** The callbacks as they are given there. Ours are taken too. */
export interface AppServerApprovals {
  /** May a command run? */
  onCommandApproval?: (request: CommandApproval & AppServerAsked) => Awaitable<AppServerDecision>;
  /** May files be changed? */
  onFileChangeApproval?: (request: FileChangeApproval & AppServerAsked) => Awaitable<AppServerDecision>;
  /** What Codex asks the user. */
  onToolUserInput?: (request: UserInputRequest & AppServerAsked) => Awaitable<AppServerAnswers>;
  /** What an MCP server asks. */
  onElicitation?: (request: AppServerElicitation) => Awaitable<AppServerElicited>;
}

/** What every question is given beside our own names. */
export interface AppServerAsked {
  /** The call that it is about. */
  itemId: string;
  /** The question's name. */
  approvalId: string;
}

/** A question of an MCP server's. */
export interface AppServerElicitation extends AppServerAsked {
  /** The thread that asks. */
  threadId: string;
  /** The turn that asks. */
  turnId: string;
  /** The MCP server. */
  serverName: string;
  /** What it asks, in words. */
  message: string;
  /** How it wants to be answered. */
  mode: string;
  /** JSON Schema of the form. */
  requestedSchema?: unknown;
  /** `codex_approval_kind` is `mcp_tool_call` where it is asked whether a tool may run. */
  _meta: {
    /** What the approval is of. */
    codex_approval_kind?: string;
    /** The tool's arguments. */
    tool_params?: unknown;
    /** How long a yes may hold. */
    persist?: string[];
  } | null;
}

/** Its answer. */
export interface AppServerElicited extends Omit<ElicitationAnswer, 'persist'> {
  /** How long the yes holds. */
  _meta?: {
    /** One of the words that the question offers. */
    persist?: 'session' | 'always';
  } | null;
}

/** A decision; a rule in Codex's own shape. */
export type AppServerDecision =
  | ApprovalDecision
  | { acceptWithExecpolicyAmendment: { execpolicy_amendment: string[] } };

/** Answers by question: in Codex's own shape, or plainly. */
export type AppServerAnswers =
  | { answers: Record<string, { answers: string[] } | undefined> }
  | Record<string, string | string[]>;

type Callbacks = Pick<CodexSettings, 'onCommandApproval' | 'onFileChangeApproval' | 'onToolUserInput' | 'onElicitation'>;

/** The callbacks in our words. */
export function callbacksOf(from: AppServerApprovals = {}): Callbacks {
  const { onCommandApproval, onFileChangeApproval, onToolUserInput, onElicitation } = from;
  return {
    ...(onCommandApproval && {
      onCommandApproval: async (request) => decisionOf(await onCommandApproval(named(request))),
    }),
    ...(onFileChangeApproval && {
      onFileChangeApproval: async (request) => decisionOf(await onFileChangeApproval(named(request))),
    }),
    ...(onToolUserInput && {
      onToolUserInput: async (request) => answersOf(await onToolUserInput(named(request))),
    }),
    ...(onElicitation && {
      onElicitation: async (request) => {
        const { server, schema, toolParams, persist, ...rest } = request;
        const isTool = toolParams !== undefined && toolParams !== null;
        const meta = isTool ? { codex_approval_kind: 'mcp_tool_call', tool_params: toolParams, persist: persist ?? [] } : null;
        const answer = await onElicitation({ ...named(rest), serverName: server, requestedSchema: schema, _meta: meta });
        const held = (answer as AppServerElicited | undefined)?._meta?.persist;
        return held === undefined ? answer : { ...answer, persist: held };
      },
    }),
  };
}

function named<T extends { id: string; callId: string }>(request: T): T & AppServerAsked {
  return { ...request, itemId: request.callId, approvalId: request.id };
}

function decisionOf(decision: AppServerDecision): ApprovalDecision {
  if (typeof decision !== 'object' || !('acceptWithExecpolicyAmendment' in decision)) return decision;
  return { acceptWithRule: decision.acceptWithExecpolicyAmendment.execpolicy_amendment };
}

function answersOf(from: AppServerAnswers): Record<string, string | string[]> {
  const { answers } = from as { answers?: unknown };
  if (answers === null || typeof answers !== 'object' || Array.isArray(answers)) return from as Record<string, string[]>;
  const lists = Object.entries(answers as Record<string, { answers?: string[] } | undefined>);
  return Object.fromEntries(lists.map(([id, given]) => [id, given?.answers ?? []]));
}

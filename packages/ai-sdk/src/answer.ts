// Codex's questions while a stream is open: a callback or a tool of the settings answers them.
// No answer, a wrong one, an error, a time-out: all mean no.

import type { ApprovalDecision, CodexSettings, ElicitationAnswer, ProviderTool } from './settings.js';

/** A question as the daemon tells it. */
export interface Interrupt {
  id: string;
  threadId: string;
  turnId: string;
  callId: string;
  kind: 'command' | 'fileChange' | 'permissions' | 'userInput' | 'elicitation' | 'toolCall';
  [more: string]: unknown;
}

/** An answer as the daemon takes it. */
export type Answer = { kind: string } & Record<string, unknown>;

/** The kinds of questions that these settings answer themselves. */
export function callbackKinds(settings: CodexSettings): string[] {
  const kinds: [string, unknown][] = [
    ['command', settings.onCommandApproval],
    ['fileChange', settings.onFileChangeApproval],
    ['permissions', settings.onPermissions],
    ['userInput', settings.onToolUserInput],
    ['elicitation', settings.onElicitation],
  ];
  return kinds.filter(([, callback]) => callback !== undefined).map(([kind]) => kind);
}

/** Asks the callback or runs the tool. Never throws. */
export async function answered(
  interrupt: Interrupt,
  settings: CodexSettings,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    return await answerOf(interrupt, settings, signal);
  } catch (error) {
    tell(settings, error);
    return refusal(interrupt, error);
  }
}

/** Tells what went wrong; nobody is there to catch what the telling itself throws. */
export function tell(settings: CodexSettings, error: unknown): void {
  try {
    settings.onCallbackError?.(error);
  } catch {
    // The answer was "no" already.
  }
}

async function answerOf(
  interrupt: Interrupt,
  settings: CodexSettings,
  signal: AbortSignal,
): Promise<Answer> {
  const request = interrupt as never;
  switch (interrupt.kind) {
    case 'command':
      return decided(await settings.onCommandApproval?.(request));
    case 'fileChange':
      return decided(await settings.onFileChangeApproval?.(request));
    case 'permissions': {
      const { granted, forSession } = (await settings.onPermissions?.(request)) ?? {};
      return { kind: 'permissions', granted: granted ?? {}, forSession: forSession === true };
    }
    case 'userInput': {
      const answers = Object.entries((await settings.onToolUserInput?.(request)) ?? {});
      const lists = answers.map(([id, answer]) => [id, Array.isArray(answer) ? answer : [answer]]);
      return { kind: 'userInput', answers: Object.fromEntries(lists) };
    }
    case 'elicitation':
      return elicited(await settings.onElicitation?.(request));
    case 'toolCall':
      return ran(interrupt, settings, signal);
  }
}

function decided(decision: ApprovalDecision | undefined): Answer {
  return { kind: 'decision', decision: decisionOf(decision) };
}

function decisionOf(decision: ApprovalDecision | undefined): unknown {
  if (decision === true || decision === 'accept') return 'accept';
  if (decision === 'acceptForSession' || decision === 'cancel') return decision;
  if (typeof decision === 'object' && Array.isArray(decision.acceptWithRule)) {
    return { acceptWithRule: decision.acceptWithRule };
  }
  return 'decline';
}

function elicited(answer: ElicitationAnswer | undefined): Answer {
  if (answer?.action !== 'accept') {
    return { kind: 'elicitation', action: answer?.action === 'cancel' ? 'cancel' : 'decline', content: null };
  }
  // Only the approval of a tool's call can be remembered; the daemon refuses it of anything else.
  if (answer.persist === 'session') return decided('acceptForSession');
  if (answer.persist === 'always') return decided({ acceptWithRule: [] });
  return { kind: 'elicitation', action: 'accept', content: answer.content ?? null };
}

const TOOL_MS = 30_000;

async function ran(
  interrupt: Interrupt,
  settings: CodexSettings,
  signal: AbortSignal,
): Promise<Answer> {
  const name = String(interrupt['tool']);
  const tool = settings.tools?.[name];
  if (tool === undefined) throw new Error(`no tool \`${name}\` in the settings`);
  const limit = settings.toolTimeoutMs ?? TOOL_MS;
  const result = await withinLimit(tool, interrupt, limit, signal);
  return { kind: 'toolResult', content: contentOf(result), success: true };
}

async function withinLimit(
  tool: ProviderTool,
  interrupt: Interrupt,
  limit: number,
  signal: AbortSignal,
): Promise<unknown> {
  const stop = AbortSignal.any([signal, AbortSignal.timeout(limit)]);
  const { callId, threadId, turnId } = interrupt;
  const toolName = String(interrupt['tool']);
  const over = new Promise<never>((_, reject) => {
    stop.addEventListener('abort', () => {
      const why = signal.aborted ? 'the turn is over' : `the tool took longer than ${limit} ms`;
      reject(new Error(why));
    });
  });
  const run = Promise.resolve().then(() =>
    tool.execute(interrupt['arguments'], { callId, threadId, turnId, toolName, signal: stop }),
  );
  return Promise.race([run, over]);
}

/** A text, a list of Codex's own pieces, or anything else as JSON. */
function contentOf(result: unknown): unknown[] {
  if (typeof result === 'string') return [{ type: 'inputText', text: result }];
  if (Array.isArray(result) && result.length > 0 && result.every(isPiece)) return result;
  return [{ type: 'inputText', text: JSON.stringify(result ?? null) }];
}

function isPiece(value: unknown): boolean {
  const type = (value as { type?: unknown } | null)?.type;
  return type === 'inputText' || type === 'inputImage';
}

/** The "no" that fits a question. */
export function refusal(interrupt: Interrupt, error: unknown): Answer {
  const why = error instanceof Error ? error.message : String(error);
  switch (interrupt.kind) {
    case 'permissions':
      return { kind: 'permissions', granted: {}, forSession: false };
    case 'userInput':
      return { kind: 'userInput', answers: {} };
    case 'elicitation':
      return { kind: 'elicitation', action: 'decline', content: null };
    case 'toolCall':
      return { kind: 'toolResult', content: [{ type: 'inputText', text: why }], success: false };
    default:
      return decided('decline');
  }
}

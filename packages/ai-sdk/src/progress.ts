// Parts of a run, told as progress: each value is the whole state so far.

import type { LanguageModelV3StreamPart } from '@ai-sdk/provider';

/** How a task stands; the last one is the tool's result. */
export interface CodexRunProgress {
  /** Where the task stands. */
  status: 'running' | 'done' | 'failed';
  /** The task's thread, to go on with it. */
  threadId?: string;
  /** What Codex said last. */
  text: string;
  /** What it did: commands, patches, searches. */
  steps: {
    /** The tool. */
    tool: string;
    /** Its input. */
    input: unknown;
    /** It went wrong. */
    failed?: boolean;
  }[];
  /** Why it failed. */
  reason?: string;
}

export async function* eventsToProgress(
  stream: ReadableStream<LanguageModelV3StreamPart>,
): AsyncGenerator<CodexRunProgress> {
  const state: CodexRunProgress = { status: 'running', text: '', steps: [] };
  const steps = new Map<string, CodexRunProgress['steps'][number]>();
  for await (const part of stream) {
    if (!advanced(state, steps, part)) continue;
    yield { ...state, steps: state.steps.map((step) => ({ ...step })) };
  }
  if (state.status === 'running') yield { ...state, status: 'failed', reason: 'the stream ended early' };
}

/** Takes a part in; whether it is worth telling. */
function advanced(
  state: CodexRunProgress,
  steps: Map<string, CodexRunProgress['steps'][number]>,
  part: LanguageModelV3StreamPart,
): boolean {
  const metadata = (part as { providerMetadata?: { codex?: { threadId?: string } } }).providerMetadata;
  if (metadata?.codex?.threadId !== undefined) state.threadId = metadata.codex.threadId;
  switch (part.type) {
    case 'text-start':
      state.text = '';
      return false;
    case 'text-delta':
      state.text += part.delta;
      return false;
    case 'text-end':
      return true;
    case 'tool-call': {
      const step = { tool: part.toolName, input: jsonOf(part.input) };
      steps.set(part.toolCallId, step);
      state.steps.push(step);
      return true;
    }
    case 'tool-result': {
      const step = steps.get(part.toolCallId);
      if (step !== undefined && part.isError === true) step.failed = true;
      return part.preliminary !== true;
    }
    case 'error':
      state.status = 'failed';
      state.reason = part.error instanceof Error ? part.error.message : String(part.error);
      return false;
    case 'finish':
      if (state.status === 'running') state.status = part.finishReason.unified === 'stop' ? 'done' : 'failed';
      return true;
    default:
      return false;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

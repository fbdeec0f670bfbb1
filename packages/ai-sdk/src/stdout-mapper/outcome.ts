// How a run ended: what Codex said about its turn, and how its process went.

import { encode, type Raw } from './json.js';
import type { Exit } from './options.js';

/** What Codex said about the turn: it was completed, or it failed, and why. */
export interface Outcome {
  completed: boolean;
  failure?: string;
}

export interface RunResult {
  status: 'success' | 'error';
  reason: string;
  error?: string;
}

export function wasStopped({ cause, signal }: Exit): boolean {
  return cause !== undefined || (signal ?? undefined) !== undefined;
}

/**
 * The verdict. Only a failed turn, or none completed and a bad end, is failure: Codex tells of errors that it then
 * overcomes, and 0.42 and older exit with 0 whatever happens.
 */
export function resultOf(outcome: Outcome, exit: Exit): RunResult {
  if (outcome.failure !== undefined) return { status: 'error', reason: 'failed', error: outcome.failure };
  if (outcome.completed) return { status: 'success', reason: 'completed' };
  if (exit.code === 0 && !wasStopped(exit)) return { status: 'success', reason: 'completed' };
  const [reason, what] = described(exit);
  return { status: 'error', reason, error: exit.detail === undefined ? what : `${what}: ${exit.detail}` };
}

const CAUSES = {
  aborted: 'the run was stopped',
  deadline: 'the run took longer than it may',
  limit: 'the run wrote more than it may',
  not_started: 'the run did not start',
};

function described({ cause, signal, code }: Exit): [string, string] {
  if (cause !== undefined) return [cause, CAUSES[cause]];
  if (typeof signal === 'string') return ['signal', `the process was ended by ${signal}`];
  if (typeof code === 'number') return ['exit', `the process ended with exit code ${code} before the turn did`];
  return ['cut', 'the stream ended before the turn did'];
}

export function resultFields({ status, reason, error }: RunResult, { code, signal }: Exit): Record<string, Raw | undefined> {
  return {
    status: encode(status),
    reason: encode(reason),
    exit_code: code?.toString(),
    signal: typeof signal === 'string' ? encode(signal) : undefined,
    error: error === undefined ? undefined : encode(error),
  };
}

// How a call stands: one table for all of Codex's words.

export type State = 'completed' | 'failed' | 'declined' | 'incomplete' | 'aborted' | 'unknown';

/** A word that we do not know is neither good nor bad; an exit code other than 0 is bad whatever the word. */
export function stateOf(word: string | undefined, exitCode: bigint | undefined): State {
  switch (word) {
    case 'failed':
    case 'error':
    case 'errored':
      return 'failed';
    case 'declined':
      return 'declined';
    case 'in_progress':
    case 'inProgress':
      // Told as done and yet running: nobody will hear of it again.
      return 'incomplete';
    case 'interrupted':
    case 'aborted':
      return 'aborted';
  }
  if (exitCode !== undefined && exitCode !== 0n) return 'failed';
  return [undefined, '', 'completed', 'complete', 'ok', 'success'].includes(word) ? 'completed' : 'unknown';
}

export function statusOf(state: State): 'success' | 'error' | 'unknown' {
  if (state === 'completed') return 'success';
  return state === 'unknown' ? 'unknown' : 'error';
}

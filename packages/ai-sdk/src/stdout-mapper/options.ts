// What a caller tells the mapper.

/** Tokens in Codex's words. */
export interface TokenCounts {
  /** Tokens read. */
  input_tokens?: number;
  /** Those of them that came from a cache. */
  cached_input_tokens?: number;
  /** Those of them that went into a cache. */
  cache_write_input_tokens?: number;
  /** Tokens written. */
  output_tokens?: number;
  /** Those of them that were reasoning. */
  reasoning_output_tokens?: number;
}

/** What is known of a run before its first line. */
export interface StdoutMapperOptions {
  /**
   * `compat` (the default) has only the words that readers of the original vocabulary know: `init`, `message`,
   * `tool_use`, `tool_result`, `stderr`. `full` has all of them, and ends with one `result`.
   */
  dialect?: 'compat' | 'full';
  /** The model, which Codex does not say since 0.44. */
  model?: string;
  /** Put before the names of items, which Codex counts from 0 in every process. */
  run?: string;
  /** The thread's tokens before this run: the `total` of its last `usage`; `unknown` where it was resumed and nobody knows. */
  baseline?: TokenCounts | 'unknown';
  /** The longest line that is read whole, in bytes; 16 MiB. A longer one is told as `unknown`. */
  lineLimit?: number;
}

/** How the process ended, as far as anybody knows. */
export interface Exit {
  /** Its exit code. */
  code?: number | null;
  /** The signal that ended it, by name. */
  signal?: string | null;
  /** Why it was ended from outside, if it was. */
  cause?: 'aborted' | 'deadline' | 'limit' | 'not_started';
  /** What is known beyond that: the last words of the process, why it did not start. */
  detail?: string;
}

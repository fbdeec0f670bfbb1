// `codex exec --json` → the normalised stream, in process: what `bindery map` does, for those who have no room for a program.
//
// It gives the same lines as the program, byte for byte, but for the words in `why` of a line that is no JSON: a test
// compares both over every recording. No import of Node's, so that it runs wherever JavaScript does.

import { decodeLine } from './stdout-mapper/decode.js';
import { Fold } from './stdout-mapper/fold.js';
import { LineSplitter } from './stdout-mapper/lines.js';
import type { Exit, StdoutMapperOptions } from './stdout-mapper/options.js';

export type { Exit, StdoutMapperOptions, TokenCounts } from './stdout-mapper/options.js';

/** Takes what `codex exec --json` prints, cut anywhere, and gives the normalised stream. */
export interface CodexStdoutMapper {
  /** Feeds what was printed, as text or bytes. Gives the lines that it completes, each with its line feed. */
  push(chunk: string | Uint8Array): string[];
  /**
   * Ends the stream: the last line without a line feed, and results for calls that are still open. How the process ended
   * decides, where Codex did not say so itself, whether the run went well: the dialect `full` always ends with one
   * `result`, and `compat` tells a bad end as `stderr`, if `exit` is given. Later calls give nothing.
   */
  flush(exit?: Exit): string[];
}

/** A mapper for one run. */
export function createCodexStdoutMapper(options: StdoutMapperOptions = {}): CodexStdoutMapper {
  const splitter = new LineSplitter(options.lineLimit);
  const fold = new Fold(options);
  let ended = false;
  const take = (lines: ReturnType<LineSplitter['push']>): string[] => {
    for (const line of lines) {
      if (line.tooLong === undefined) fold.line(line.text, decodeLine);
      else fold.strange('', `the line is longer than ${splitter.limit} bytes`, line.text, line.tooLong);
    }
    return fold.drain();
  };
  return {
    push: (chunk) => (ended ? [] : take(splitter.push(chunk))),
    flush(exit) {
      if (ended) return [];
      ended = true;
      const last = take(splitter.finish());
      fold.end(exit);
      return [...last, ...fold.drain()];
    },
  };
}

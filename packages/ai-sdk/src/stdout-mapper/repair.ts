// Lines made fit to be copied from: no space around them, and no halves of surrogate pairs.

const HALF = /\\u[dD][89a-fA-F]/;

/** Any escape; of halves of pairs the first with its second, where that follows. */
const ESCAPE = /\\(?:u([dD][89abAB][0-9a-fA-F]{2})(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|u([dD][c-fC-F][0-9a-fA-F]{2})|[^])/g;

/** Pieces of a line go out as they stand, so they must be good JSON anywhere. */
export function repair(line: string): string {
  const text = trimmed(line);
  if (!HALF.test(text)) return text;
  return text.replace(ESCAPE, (escape: string, first?: string, second?: string, alone?: string) =>
    (first !== undefined && second === undefined) || alone !== undefined ? '\\ufffd' : escape,
  );
}

/** JavaScript does not count one sign of white space that others do. */
function trimmed(line: string): string {
  const text = line.trim();
  return text.startsWith('\u0085') || text.endsWith('\u0085') ? text.replace(/^[\s\u0085]+|[\s\u0085]+$/g, '') : text;
}

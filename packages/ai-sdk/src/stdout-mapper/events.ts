// The normalised stream's lines, in either dialect.

import { encode, type Raw } from './json.js';

/** A line: its `type` and its fields in order; those without a value are left out. */
export type Fields = Record<string, Raw | undefined>;

/** Words and fields of the original vocabulary. */
const COMPAT: Record<string, readonly string[]> = {
  init: ['session_id', 'modelId'],
  message: ['role', 'content', 'delta'],
  tool_use: ['tool_name', 'tool_id', 'parameters'],
  tool_result: ['tool_id', 'status', 'output'],
  stderr: ['content'],
};

export class EventLines {
  private lines: string[] = [];

  constructor(private readonly compat: boolean) {}

  tell(type: string, fields: Fields): void {
    if (!this.compat) {
      this.lines.push(lineOf(type, Object.entries(fields)));
    } else if (type === 'error') {
      // The only place that the original vocabulary has for it.
      this.lines.push(lineOf('stderr', [['content', fields['message']]]));
    } else if (Object.hasOwn(COMPAT, type)) {
      this.lines.push(lineOf(type, (COMPAT[type] ?? []).map((name) => [name, fields[name]])));
    }
  }

  /** Gives the lines since the last time. */
  drain(): string[] {
    const { lines } = this;
    this.lines = [];
    return lines;
  }
}

function lineOf(type: string, fields: [string, Raw | undefined][]): string {
  return `${objectOf([['type', encode(type)], ...fields])}\n`;
}

/** An object of values that are JSON already. */
export function objectOf(fields: [string, Raw | undefined][]): Raw {
  const given = fields.filter(([, value]) => value !== undefined);
  return `{${given.map(([name, value]) => `"${name}":${value ?? ''}`).join(',')}}`;
}

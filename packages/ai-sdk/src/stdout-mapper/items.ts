// Items of today's vocabulary → events.

import { messageIn, need, Strange, there, words, type Decoded } from './decode.js';
import { objectOf } from './events.js';
import type { Fold, PlanItem } from './fold.js';
import { decode, encode, integer, isObject, some, text, type Members, type Raw } from './json.js';
import { stateOf } from './state.js';
import type { Answer, Call } from './tools.js';

const WEB_SEARCH = encode('codex_web_search');

/** Takes one item line. What it must have is read before anything is told. */
export function takeItem(fold: Fold, line: Extract<Decoded, { kind: 'item' }>, whole: string): void {
  const { item, type } = line;
  const isDone = line.phase === 'completed';
  switch (type) {
    case 'agent_message':
    case 'assistant_message':
    case 'reasoning': {
      const [content, id] = [need(item, 'text'), need(item, 'id')];
      if (!isDone) return;
      return type === 'reasoning' ? fold.reason(content, id) : fold.say(content, false, id);
    }
    case 'error':
      need(item, 'id');
      if (isDone) fold.notice(words(item.get('message'), whole), 'warning');
      return;
    case 'todo_list': {
      const items = planItems(there(item, 'items'));
      return fold.plan(need(item, 'id'), undefined, items);
    }
    default:
      return takeTool(fold, item, type, isDone);
  }
}

function takeTool(fold: Fold, item: Members, type: string, isDone: boolean): void {
  const { call, answer } = toolOf(item, type);
  if (isDone) return fold.tools.end(call, answer);
  if (type === 'web_search' && need(item, 'query') === '""') {
    fold.tools.announce(call.id, WEB_SEARCH, false);
    return;
  }
  fold.tools.begin(call);
}

/** The call an item is, and its answer if it is done. */
function toolOf(item: Members, type: string): { call: Call; answer: Answer } {
  const status = text(item.get('status'));
  const word = status === undefined ? undefined : decode(status);
  const ended = (output: Raw, more: Partial<Answer> = {}): Answer => ({ state: stateOf(word, more.exitCode), output, ...more });
  const called = (name: Raw, parameters: Raw, answer: Answer, callId?: Raw) => ({
    call: { id: need(item, 'id'), name, parameters, callId },
    answer,
  });
  switch (type) {
    case 'command_execution': {
      const parameters = objectOf([['command', need(item, 'command')]]);
      const answer = ended(text(item.get('aggregated_output')) ?? '""', { exitCode: integer(item.get('exit_code')) });
      return called(encode('codex_command_execution'), parameters, answer);
    }
    case 'file_change': {
      const changes = there(item, 'changes');
      return called(encode('codex_file_change'), objectOf([['changes', changes]]), ended(encode(listChanges(changes))));
    }
    case 'mcp_tool_call': {
      const name = mcpName(need(item, 'server'), need(item, 'tool'));
      const [error, result] = [some(item.get('error')), some(item.get('result'))];
      const output = error === undefined ? encode(result === undefined ? '' : contentText(result)) : messageIn(error, error);
      return called(name, some(item.get('arguments')) ?? '{}', ended(output, { result }));
    }
    case 'web_search': {
      const parameters = objectOf([['query', need(item, 'query')], ['action', some(item.get('action'))]]);
      // Codex does not tell what a search found.
      return called(WEB_SEARCH, parameters, { state: 'completed', output: '""' }, text(item.again('id')));
    }
    case 'collab_tool_call': {
      const parameters = objectOf([
        ['action', need(item, 'tool')],
        ['prompt', text(item.get('prompt'))],
        ['threads', some(item.get('receiver_thread_ids'))],
      ]);
      const result = some(item.get('agents_states'));
      const output = encode(result === undefined ? '' : listAgents(result));
      return called(encode('codex_agent'), parameters, ended(output, { result }));
    }
    default:
      throw new Strange('a type of item that is new to us');
  }
}

/** The name of an MCP tool. */
export function mcpName(server: Raw, tool: Raw): Raw {
  return encode(`mcp:${decode(server)}/${decode(tool)}`);
}

function planItems(raw: Raw): PlanItem[] {
  const steps: unknown = JSON.parse(raw);
  if (!Array.isArray(steps)) throw new Strange('`items`: not a list');
  return steps.map((step: unknown) => {
    const { text, completed, in_progress: inProgress = false } = (step ?? {}) as Record<string, unknown>;
    if (typeof text !== 'string' || typeof completed !== 'boolean' || typeof inProgress !== 'boolean') {
      throw new Strange('`items`: not a step');
    }
    return { text, completed, inProgress };
  });
}

/** One line a change: what happened, and to which file. */
function listChanges(raw: Raw): string {
  const changes: unknown = JSON.parse(raw);
  if (!Array.isArray(changes)) return '';
  const lines = changes.map((change: unknown) => {
    const { path, kind } = (change ?? {}) as Record<string, unknown>;
    return typeof path === 'string' && typeof kind === 'string' ? `${kind} ${path}` : undefined;
  });
  return lines.includes(undefined) ? '' : lines.join('\n');
}

/** The text pieces of an MCP answer; the whole answer where there are none. */
export function contentText(result: Raw): string {
  const content: unknown = isObject(result) ? (JSON.parse(result) as { content?: unknown }).content : undefined;
  const texts = Array.isArray(content) ? content.map(pieceText) : [];
  const given = texts.includes(undefined) ? [] : texts.filter((piece) => piece !== null);
  return given.length === 0 ? result : given.join('\n');
}

/** The text of a piece, `null` where it has none; nothing where it is no piece. */
function pieceText(piece: unknown): string | null | undefined {
  if (typeof piece !== 'object' || piece === null || Array.isArray(piece)) return undefined;
  const { text = null } = piece as { text?: unknown };
  return text === null || typeof text === 'string' ? text : undefined;
}

/** One line an agent: its thread, how it stands, what it says. */
function listAgents(raw: Raw): string {
  if (!isObject(raw)) return '';
  const agents = Object.entries(JSON.parse(raw) as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = agents.map(([thread, agent]) => {
    const { status, message = null } = (agent ?? {}) as Record<string, unknown>;
    if (typeof status !== 'string' || (message !== null && typeof message !== 'string')) return undefined;
    return message === null ? `${thread} ${status}` : `${thread} ${status}: ${message}`;
  });
  return lines.includes(undefined) ? '' : lines.join('\n');
}

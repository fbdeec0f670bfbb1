// Events of 0.42 and older (`{"id":"0","msg":{"type":…}}`) → events.

import { need, Strange, there, words, type Decoded } from './decode.js';
import { objectOf } from './events.js';
import type { Fold, PlanItem } from './fold.js';
import { contentText, mcpName } from './items.js';
import { decode, encode, integer, isObject, isText, Members, shown, some, text, type Raw } from './json.js';
import { stateOf, type State } from './state.js';
import { tokensOf, tokensOfResponse } from './tokens.js';
import type { Answer, Call } from './tools.js';

const WEB_SEARCH = encode('codex_web_search');

/** The whole diff is the sum of the patches; the others come with their end as well, or only divide. */
const NOT_SHOWN = new Set([
  'turn_diff', 'agent_reasoning_section_break', 'agent_message_delta', 'agent_reasoning_delta',
  'agent_reasoning_raw_content', 'agent_reasoning_raw_content_delta', 'session_configured', 'task_complete',
  'shutdown_complete', 'user_message',
]);

/** Takes one event. Nothing tells the end of a turn: it is done when the model has spoken and no tool runs. */
export function takeMsg(fold: Fold, { msg, type }: Extract<Decoded, { kind: 'msg' }>, whole: string): void {
  switch (type) {
    case 'task_started':
      return fold.mayBeDone(false);
    case 'agent_message': {
      const message = need(msg, 'message');
      fold.mayBeDone(true);
      return fold.say(message, false);
    }
    case 'agent_reasoning':
      return fold.reason(need(msg, 'text'));
    case 'plan_update':
      return fold.plan(undefined, text(msg.get('explanation')), planItems(there(msg, 'plan')));
    case 'token_count':
      return takeTokens(fold, msg);
    case 'stream_error':
    case 'background_event': {
      const message = words(msg.get('message'), whole);
      return fold.notice(message, decode(message).includes('; retrying ') ? 'retry' : 'warning');
    }
    case 'error':
      return fold.fail(words(msg.get('message'), whole));
    default:
      if (!NOT_SHOWN.has(type)) takeTool(fold, msg, type);
  }
}

function takeTokens(fold: Fold, msg: Members): void {
  if (msg.get('input_tokens') !== undefined) return fold.count(tokensOfResponse(msg));
  const info = some(msg.get('info'));
  if (info === undefined || !isObject(info)) return;
  fold.running = tokensOf(new Members(info).get('total_token_usage')) ?? fold.running;
}

function takeTool(fold: Fold, msg: Members, type: string): void {
  const id = () => need(msg, 'call_id');
  const begin = (name: string, parameters: Raw) => fold.tools.begin({ id: id(), name: encode(name), parameters });
  switch (type) {
    case 'exec_command_begin': {
      const parameters = [['command', commandLine(there(msg, 'command'))], ['cwd', text(msg.get('cwd'))]];
      return begin('codex_command_execution', objectOf(parameters as [string, Raw | undefined][]));
    }
    case 'exec_command_output_delta':
      return fold.tools.output(id(), there(msg, 'chunk'));
    case 'exec_command_end':
      return fold.tools.answer(id(), commandAnswer(msg));
    case 'patch_apply_begin':
      return begin('codex_file_change', objectOf([['changes', patch(there(msg, 'changes'))]]));
    case 'patch_apply_end':
      return fold.tools.answer(id(), plain(msg.get('success') === 'true', both(msg)));
    case 'mcp_tool_call_begin':
      return fold.tools.begin(mcpCall(id(), there(msg, 'invocation')));
    case 'mcp_tool_call_end': {
      const call = mcpCall(id(), there(msg, 'invocation'));
      return fold.tools.end(call, mcpAnswer(there(msg, 'result')));
    }
    case 'web_search_begin':
      fold.tools.announce(id(), WEB_SEARCH, false);
      return;
    case 'web_search_end': {
      const call = { id: id(), name: WEB_SEARCH, parameters: objectOf([['query', need(msg, 'query')]]) };
      return fold.tools.end(call, plain(true, '""'));
    }
    default:
      throw new Strange('a type of event that is new to us');
  }
}

function plain(isGood: boolean, output: Raw): Answer {
  const state: State = isGood ? 'completed' : 'failed';
  return { state, output };
}

function commandAnswer(msg: Members): Answer {
  const exitCode = integer(msg.get('exit_code'));
  return { state: stateOf(undefined, exitCode), output: text(msg.get('aggregated_output')) ?? both(msg), exitCode };
}

/** What was printed to either. */
function both(msg: Members): Raw {
  const [first, second] = [msg.get('stdout'), msg.get('stderr')].filter((raw) => isText(raw) && raw !== '""');
  if (first === undefined) return '""';
  return second === undefined ? first : encode(decode(first) + decode(second));
}

/** Program and arguments as one line, quoted as a shell needs it; later versions print it so. */
function commandLine(raw: Raw): Raw {
  const command: unknown = JSON.parse(raw);
  const isWords = Array.isArray(command) && command.every((word) => typeof word === 'string');
  return isWords ? encode(command.map(quoted).join(' ')) : shown(raw);
}

function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Path → `{"add":{"content"}}`, `{"update":{"unified_diff","move_path"}}`, `{"delete":{"content"}}` or `"delete"`. */
function patch(raw: Raw): Raw {
  const changes = isObject(raw) ? (JSON.parse(raw) as Record<string, unknown>) : {};
  const entries = Object.entries(changes).sort(([a], [b]) => (a < b ? -1 : 1));
  return `[${entries.map(([path, change]) => writtenChange(path, change)).join(',')}]`;
}

function writtenChange(path: string, change: unknown): Raw {
  const given = (typeof change === 'object' && change !== null ? change : {}) as Record<string, unknown>;
  const of = (kind: string, key: string): string | undefined => {
    const value = (given[kind] as Record<string, unknown> | null | undefined)?.[key];
    return typeof value === 'string' ? value : undefined;
  };
  const kind = ['add', 'update'].find((name) => given[name] !== undefined) ?? 'delete';
  const movePath = of('update', 'move_path');
  return objectOf([
    ['path', encode(path)],
    ['kind', encode(kind)],
    ['move_path', movePath === undefined ? undefined : encode(movePath)],
    ['diff', encode(of(kind, kind === 'update' ? 'unified_diff' : 'content') ?? '')],
  ]);
}

function mcpCall(id: Raw, invocation: Raw): Call {
  const fields = isObject(invocation) ? new Members(invocation) : undefined;
  const [server, tool] = [text(fields?.get('server')), text(fields?.get('tool'))];
  if (server === undefined || tool === undefined) return { id, name: encode('mcp:unknown'), parameters: invocation };
  return { id, name: mcpName(server, tool), parameters: some(fields?.get('arguments')) ?? '{}' };
}

/** `{"Ok": …}` or `{"Err": …}`. */
function mcpAnswer(result: Raw): Answer {
  const names = isObject(result) ? Object.keys(JSON.parse(result) as object) : [];
  const [name] = names;
  const inner = names.length === 1 && name !== undefined ? new Members(result).get(name) : undefined;
  if (inner !== undefined && name === 'Ok') return { ...plain(!isError(inner), encode(contentText(inner))), result: inner };
  if (inner !== undefined && name === 'Err') return { ...plain(false, shown(inner)), result: inner };
  return { ...plain(false, encode(result)), result };
}

function isError(raw: Raw): boolean {
  if (!isObject(raw)) return false;
  const { isError: now, is_error: before } = JSON.parse(raw) as { isError?: unknown; is_error?: unknown };
  return now === true || before === true;
}

function planItems(raw: Raw): PlanItem[] {
  const steps: unknown = JSON.parse(raw);
  if (!Array.isArray(steps)) throw new Strange('`plan`: not a list');
  return steps.map((given: unknown) => {
    const { step, status } = (given ?? {}) as Record<string, unknown>;
    if (typeof step !== 'string' || typeof status !== 'string') throw new Strange('`plan`: not a step');
    return { text: step, completed: status === 'completed', inProgress: status === 'in_progress' };
  });
}

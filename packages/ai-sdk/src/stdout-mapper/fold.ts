// The state of a stream, and what every vocabulary has in common.

import { messageIn, need, shownIn, Strange, tagOf, words, type Decoded } from './decode.js';
import { EventLines, objectOf } from './events.js';
import { takeItem } from './items.js';
import { decode, encode, text, type Members, type Raw } from './json.js';
import { beginning, byteLength } from './lines.js';
import { takeMsg } from './msgs.js';
import type { Exit, StdoutMapperOptions } from './options.js';
import { resultFields, resultOf, wasStopped, type Outcome } from './outcome.js';
import { repair } from './repair.js';
import { plus, tokensOf, Totals, written, NONE, type Tokens } from './tokens.js';
import { Tools } from './tools.js';

/** A step of a plan. */
export interface PlanItem {
  text: string;
  completed: boolean;
  /** Only older Codex versions say so. */
  inProgress: boolean;
}

export class Fold {
  readonly events: EventLines;
  readonly tools: Tools;
  /** Tokens of the turn so far; only 0.42 and older count while it runs. */
  running: Tokens | undefined;
  private totals: Totals;
  private outcome: Outcome = { completed: false };
  /** An error that may be said again by `turn.failed`, or overcome. */
  private held: string | undefined;
  private shownPlan = '[]';
  private thread: string | undefined;
  private runs = 0;
  /** Errors are told at once, as the original mapper did. */
  private readonly eager: boolean;
  private readonly run: string;

  constructor(private readonly options: StdoutMapperOptions) {
    this.eager = options.dialect !== 'full';
    this.run = options.run === undefined ? '' : `${options.run}:`;
    this.events = new EventLines(this.eager);
    this.tools = new Tools(this.events, this.run);
    this.totals = new Totals(options.baseline);
  }

  drain(): string[] {
    return this.events.drain();
  }

  /** Takes one line. */
  line(line: string, decodeLine: (line: string) => Decoded): void {
    const text = repair(line);
    if (text === '') return;
    const decoded = decodeLine(text);
    if (!(decoded.kind === 'event' && decoded.type === 'turn.failed')) this.release(false);
    try {
      this.take(decoded, text);
    } catch (error) {
      if (!(error instanceof Strange)) throw error;
      this.strange(tagOf(text), error.message, text, byteLength(text));
    }
  }

  /** Ends the stream; a reader of the original vocabulary is told of a bad end only by who knows how it was. */
  end(given: Exit | undefined): void {
    const exit = given ?? {};
    const isComplete = this.tools.isEmpty;
    this.tools.close(wasStopped(exit) ? 'aborted' : 'incomplete');
    this.closeOldTurn(isComplete);
    const result = resultOf(this.outcome, exit);
    this.release(result.status === 'error');
    const isToldOf = this.outcome.failure !== undefined || (this.eager && given === undefined);
    if (result.error !== undefined && !isToldOf) this.tellError(encode(result.error), true);
    this.events.tell('result', resultFields(result, exit));
  }

  /** A line nobody understands is shown, not dropped. */
  strange(tag: string, why: string, line: string, bytes: number): void {
    this.events.tell('unknown', {
      tag: encode(tag), why: encode(why), raw: encode(beginning(line)), bytes: bytes.toString(),
    });
  }

  /** The model says something. */
  say(content: Raw, delta: boolean, id?: Raw): void {
    this.message('assistant', content, delta, id === undefined ? undefined : this.tools.name(id));
  }

  reason(content: Raw, id?: Raw): void {
    this.events.tell('reasoning', { content, id: id === undefined ? undefined : this.tools.name(id) });
  }

  /** Something that is neither answer nor failure. */
  notice(content: Raw, topic: 'retry' | 'warning'): void {
    this.events.tell('stderr', { content, severity: '"warning"', topic: encode(topic) });
  }

  /** The plan changes; it is told only if it does. */
  plan(id: Raw | undefined, explanation: Raw | undefined, items: PlanItem[]): void {
    const list = `[${items.map(writtenItem).join(',')}]`;
    if (list === this.shownPlan) return;
    this.shownPlan = list;
    this.events.tell('plan', { id: id === undefined ? undefined : this.tools.name(id), explanation, items: list });
  }

  /** The turn failed. */
  fail(message: Raw): void {
    const failure = decode(message);
    const { held } = this;
    this.held = undefined;
    if (held !== undefined && held !== failure && !this.eager) this.tellError(encode(held), false);
    if (!(this.eager && held === failure)) this.tellError(encode(failure), true);
    this.tools.close('incomplete');
    this.outcome.failure = failure;
  }

  /** Tokens of the response that just came; told at the end of the turn. */
  count(response: Tokens): void {
    this.running = plus(this.running ?? NONE, response);
  }

  /** The model has said something, so that the turn of an old Codex may be over. */
  mayBeDone(done: boolean): void {
    this.outcome.completed = done;
  }

  private take(line: Decoded, whole: string): void {
    switch (line.kind) {
      case 'event':
        return this.takeEvent(line.type, line.fields, whole);
      case 'item':
        return takeItem(this, line, whole);
      case 'msg':
        return takeMsg(this, line, whole);
      case 'config':
        return this.init(undefined, line.fields.get('model'), text(line.fields.get('workdir')));
      case 'prompt':
        return this.message('user', need(line.fields, 'prompt'), false, undefined);
      case 'unknown':
        return this.strange(line.tag, line.why, whole, byteLength(whole));
    }
  }

  private takeEvent(type: string, fields: Members, whole: string): void {
    switch (type) {
      case 'thread.started':
        return this.init(need(fields, 'thread_id'), undefined, undefined);
      case 'session.created':
        return this.init(shownIn(fields, 'id'), shownIn(fields, 'model'), undefined);
      case 'turn.started':
        this.outcome = { completed: false };
        return;
      case 'turn.completed':
        return this.complete(tokensOf(fields.get('usage')));
      case 'turn.failed':
        return this.fail(messageIn(fields.get('error'), whole));
      case 'error':
        return this.error(words(fields.get('message'), whole));
      case 'message.output_text.delta':
        return this.say(shownIn(fields, 'delta') ?? '""', true);
      case 'message.output_text.done':
        this.outcome.completed = true;
        return this.say(shownIn(fields, 'text') ?? '""', false);
      case 'response.completed':
        this.outcome.completed = true;
    }
  }

  /** Codex says who it is. Several runs may follow each other in one stream. */
  private init(sessionId: Raw | undefined, model: Raw | undefined, cwd: Raw | undefined): void {
    this.beginRun(sessionId === undefined ? undefined : decode(sessionId));
    const known = this.options.model === undefined ? undefined : encode(this.options.model);
    this.events.tell('init', { session_id: sessionId, modelId: model ?? known, agent: '"codex"', cwd });
  }

  private beginRun(thread: string | undefined): void {
    this.runs += 1;
    if (this.runs > 1) {
      const isComplete = this.tools.isEmpty;
      this.tools.close('incomplete');
      this.closeOldTurn(isComplete);
      this.tools.forget();
      this.tools.prefix = `${this.run}${this.runs}:`;
      this.shownPlan = '[]';
      this.outcome = { completed: false };
      if (thread !== this.thread) this.totals = new Totals({});
    }
    this.thread = thread;
  }

  private message(role: 'user' | 'assistant', content: Raw, delta: boolean, id: Raw | undefined): void {
    this.events.tell('message', { role: encode(role), content, delta: delta.toString(), id });
  }

  private complete(total: Tokens | undefined): void {
    this.tools.close('incomplete');
    this.outcome = { completed: true };
    if (total !== undefined) this.tellUsage(this.totals.turn(total), total);
  }

  /** The end of a turn, for Codex versions that do not tell it. */
  private closeOldTurn(isComplete: boolean): void {
    if (!isComplete) this.outcome.completed = false;
    if (this.running === undefined) return;
    const turn = this.running;
    this.running = undefined;
    this.tellUsage(turn, this.totals.add(turn));
  }

  private tellUsage(turn: Tokens | undefined, total: Tokens): void {
    this.events.tell('usage', { turn: turn === undefined ? undefined : written(turn), total: written(total) });
  }

  /** A top-level `error` is not the end: Codex tells each attempt to reconnect so. 0.50 wrote it with a hyphen. */
  private error(message: Raw): void {
    if (/^"(?:Reconnecting|Re-connecting)/.test(message)) return this.notice(message, 'retry');
    if (this.eager) this.tellError(message, false);
    this.held = decode(message);
  }

  /** Tells an error that no `turn.failed` repeated. */
  private release(fatal: boolean): void {
    const { held } = this;
    this.held = undefined;
    if (held !== undefined && !this.eager) this.tellError(encode(held), fatal);
  }

  private tellError(message: Raw, fatal: boolean): void {
    this.events.tell('error', { message, fatal: fatal.toString() });
  }
}

function writtenItem({ text, completed, inProgress }: PlanItem): Raw {
  return objectOf([
    ['text', encode(text)],
    ['completed', completed.toString()],
    ['in_progress', inProgress ? 'true' : undefined],
  ]);
}

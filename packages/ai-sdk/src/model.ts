// The language model: the SDK calls it, the daemon does the work.

import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV3StreamResult,
} from '@ai-sdk/provider';

import { open, type OpenCall } from './call.js';
import { BinderyError, errorOfTurn } from './errors.js';
import type { CallEvents } from './events.js';
import type { Lease } from './lease.js';
import { checkCallOptions, OPTION_KEYS } from './check-settings.js';
import { refuseLocalFiles } from './local-files.js';
import { perCall } from './per-call.js';
import type { CodexSettings } from './settings.js';
import { REFUSED_MARK, ThreadMarks } from './thread-marks.js';

/**
 * A model in the shape of either specification. The types are V3's, which every SDK since ai@6
 * takes; what comes out is in the shape that `specificationVersion` says.
 */
export class CodexLanguageModel implements LanguageModelV3 {
  readonly specificationVersion: 'v3';
  readonly provider = 'codex';
  /**
   * Codex takes no addresses of the web: the SDK downloads them. Files of this machine it cannot download; they come here
   * as they are, to be passed on where `allowLocalFiles` is set, and else to be refused with a reason.
   */
  readonly supportedUrls = { '*/*': [/^\s*file:/i] };

  constructor(
    readonly modelId: string,
    readonly settings: CodexSettings,
    readonly specification: 'v3' | 'v4',
    readonly lease: Lease,
  ) {
    this.specificationVersion = specification as 'v3';
  }

  async doGenerate(options: LanguageModelV3CallOptions): Promise<LanguageModelV3GenerateResult> {
    const { call, marks, warnings } = await this.#open(options, true);
    const value = await generated(call);
    signAll(value, marks);
    return resultOf(withWarnings(value, warnings), call.request, call.headers);
  }

  async doStream(options: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamResult> {
    const { call, marks, warnings } = await this.#open(options, false);
    const read = (value: Record<string, unknown>): LanguageModelV3StreamPart => {
      marks.sign(value);
      return partOf(value['type'] === 'stream-start' ? withWarnings(value, warnings) : value, call.url);
    };
    return {
      stream: streamOf(call.events, read),
      request: { body: call.request },
      response: { headers: call.headers },
    };
  }

  async #open(given: LanguageModelV3CallOptions, generate: boolean): Promise<CheckedCall> {
    const { specification, modelId } = this;
    checkCallOptions(given.providerOptions);
    const { settings, options } = perCall(this.settings, given);
    if (settings.allowLocalFiles !== true) refuseLocalFiles(options.prompt);
    const marks = new ThreadMarks(settings);
    const named = OPTION_KEYS.map((key) => options.providerOptions?.[key]?.['threadId']).find((id) => id != null);
    const { prompt, refused } = await marks.admit(options.prompt, named ?? threadIdOf(settings));
    const admitted = { ...options, prompt } as LanguageModelV3CallOptions;
    const call = await open({ specification, modelId, options: admitted, generate }, settings, this.lease);
    return { call, marks, warnings: refused === 0 ? [] : [{ type: 'other', message: REFUSED_MARK }] };
  }
}

/** A call whose settings and messages were checked. */
interface CheckedCall {
  call: OpenCall;
  marks: ThreadMarks;
  warnings: { type: 'other'; message: string }[];
}

/** The daemon takes every option of a call among the thread's settings, too. */
function threadIdOf({ thread }: CodexSettings): unknown {
  return (thread as { threadId?: unknown } | undefined)?.threadId;
}

function withWarnings(value: Record<string, unknown>, warnings: unknown[]): Record<string, unknown> {
  if (warnings.length === 0) return value;
  return { ...value, warnings: [...warnings, ...((value['warnings'] as unknown[] | undefined) ?? [])] };
}

function signAll(value: Record<string, unknown>, marks: ThreadMarks): void {
  marks.sign(value);
  for (const part of (value['content'] as unknown[] | undefined) ?? []) marks.sign(part);
}

function resultOf(
  value: Record<string, unknown>,
  request: Record<string, unknown>,
  headers: Record<string, string>,
): LanguageModelV3GenerateResult {
  const response = { ...(value['response'] as object | undefined), headers };
  return {
    ...value,
    request: { body: request },
    response: withDate(response),
  } as unknown as LanguageModelV3GenerateResult;
}

/** The whole answer of a call that asked for nothing else. */
function generated({ events, url }: OpenCall): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    events.tell({
      event: (event, value) => {
        if (event === 'failed') reject(errorOfTurn(url, value['error']));
        else if (event === 'generated') resolve(value);
      },
      end: () => reject(new BinderyError('the daemon gave no result', 'stream_cut')),
      cut: reject,
      abort: reject,
    });
  });
}

/** Parts that may wait here for their reader, about; a slow one slows the daemon and not this process. */
const WAITING = 16;

function streamOf(
  events: CallEvents,
  read: (value: Record<string, unknown>) => LanguageModelV3StreamPart,
): ReadableStream<LanguageModelV3StreamPart> {
  return new ReadableStream<LanguageModelV3StreamPart>(
    {
      start(controller) {
        events.tell({
          event: (event, value) => {
            if (event === 'message') controller.enqueue(read(value));
          },
          rest: () => {
            if ((controller.desiredSize ?? 0) <= 0) events.pause();
          },
          end: () => controller.close(),
          // Told as a part: of a stream that fails the SDK makes a rejection that nobody catches.
          cut: (error) => {
            controller.enqueue({ type: 'error', error });
            controller.enqueue(endedBy(error));
            controller.close();
          },
          abort: (reason) => controller.error(reason),
        });
      },
      pull: () => events.resume(),
      cancel: () => events.cancel(),
    },
    { highWaterMark: WAITING },
  );
}

/** The end of an answer that was cut. How much was used nobody knows. */
function endedBy({ code }: BinderyError): LanguageModelV3StreamPart {
  const inputTokens = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
  const outputTokens = { total: undefined, text: undefined, reasoning: undefined };
  return { type: 'finish', finishReason: { unified: 'error', raw: code }, usage: { inputTokens, outputTokens } };
}

function partOf(value: Record<string, unknown>, url: string): LanguageModelV3StreamPart {
  if (value['type'] === 'error') {
    return { type: 'error', error: errorOfTurn(url, value['error']) };
  }
  return withDate(value) as unknown as LanguageModelV3StreamPart;
}

function withDate<T extends object>(value: T): T {
  const timestamp = (value as { timestamp?: unknown }).timestamp;
  return typeof timestamp === 'string' ? { ...value, timestamp: new Date(timestamp) } : value;
}

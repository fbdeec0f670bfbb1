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
import { perCall } from './per-call.js';
import type { CodexSettings } from './settings.js';

/**
 * A model in the shape of either specification. The types are V3's, which every SDK since ai@6
 * takes; what comes out is in the shape that `specificationVersion` says.
 */
export class CodexLanguageModel implements LanguageModelV3 {
  readonly specificationVersion: 'v3';
  readonly provider = 'codex';
  /** Codex takes no addresses of images: the SDK downloads them. */
  readonly supportedUrls = {};

  constructor(
    readonly modelId: string,
    readonly settings: CodexSettings,
    readonly specification: 'v3' | 'v4',
    readonly lease: Lease,
  ) {
    this.specificationVersion = specification as 'v3';
  }

  async doGenerate(options: LanguageModelV3CallOptions): Promise<LanguageModelV3GenerateResult> {
    const call = await this.#open(options, true);
    const value = await generated(call);
    return resultOf(value, call.request, call.headers);
  }

  async doStream(options: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamResult> {
    const call = await this.#open(options, false);
    return {
      stream: streamOf(call.events, call.url),
      request: { body: call.request },
      response: { headers: call.headers },
    };
  }

  #open(given: LanguageModelV3CallOptions, generate: boolean) {
    const { specification, modelId } = this;
    const { settings, options } = perCall(this.settings, given);
    return open({ specification, modelId, options, generate }, settings, this.lease);
  }
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

function streamOf(events: CallEvents, url: string): ReadableStream<LanguageModelV3StreamPart> {
  return new ReadableStream<LanguageModelV3StreamPart>(
    {
      start(controller) {
        events.tell({
          event: (event, value) => {
            if (event === 'message') controller.enqueue(partOf(value, url));
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

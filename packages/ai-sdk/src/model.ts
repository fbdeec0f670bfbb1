// The language model: the SDK calls it, the daemon does the work.

import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV3StreamResult,
} from '@ai-sdk/provider';

import { open, type CallEvent } from './call.js';
import { BinderyError, errorOfTurn } from './errors.js';
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
  ) {
    this.specificationVersion = specification as 'v3';
  }

  async doGenerate(options: LanguageModelV3CallOptions): Promise<LanguageModelV3GenerateResult> {
    const call = await this.#open(options, true);
    for await (const event of call.events) {
      if (event.event === 'failed') throw errorOfTurn(call.url, event.value.error);
      if (event.event === 'generated') return resultOf(event.value, call.request, call.headers);
    }
    throw new BinderyError('the daemon gave no result', 'stream_cut');
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
    return open({ specification, modelId, options, generate }, settings);
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

/** Pulls one event per read, so that a slow reader slows the daemon and not this process. */
function streamOf(
  events: AsyncGenerator<CallEvent>,
  url: string,
): ReadableStream<LanguageModelV3StreamPart> {
  return new ReadableStream<LanguageModelV3StreamPart>(
    {
      async pull(controller) {
        // A pull that brings nothing is not repeated, so it goes on to the next part or the end.
        let next = await events.next();
        while (next.done !== true && next.value.event !== 'part') next = await events.next();
        if (next.done === true) controller.close();
        else controller.enqueue(partOf(next.value.value, url));
      },
      async cancel() {
        await events.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
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

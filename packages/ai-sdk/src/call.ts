// One call: a request to the daemon, the events of its answer, and the questions in between.

import { APICallError } from '@ai-sdk/provider';

import { ask } from './ask.js';
import { answered, callbackKinds, refusal, tell, type Answer, type Interrupt } from './answer.js';
import type { Problem } from './errors.js';
import { CallEvents, type Aside } from './events.js';
import { jsonOfOptions } from './json.js';
import type { Lease } from './lease.js';
import type { Server } from './server.js';
import type { CodexSession, CodexSettings } from './settings.js';
import { stream } from './stream.js';

/** What one call asks for. */
export interface Asked {
  specification: 'v3' | 'v4';
  modelId: string;
  options: { abortSignal?: AbortSignal | undefined };
  /** Only the gathered result is wanted. */
  generate: boolean;
}

/** A call whose request was taken. */
export interface OpenCall {
  url: string;
  request: Record<string, unknown>;
  headers: Record<string, string>;
  events: CallEvents;
}

/** Sends a call; throws what the daemon refuses, and the abort of the caller. */
export async function open(asked: Asked, settings: CodexSettings, lease: Lease): Promise<OpenCall> {
  const signal = asked.options.abortSignal;
  signal?.throwIfAborted();
  const request = requestOf(asked, settings, await unlessAborted(compactionOf(asked, settings), signal));
  const server = await unlessAborted(lease.server(settings), signal);
  const { answer, headers, url } = await stream(server, '/v1/language-model/stream', request, signal, lease);
  const events = new CallEvents(answer, signal, asideOf(server, settings));
  return { url, request, headers, events };
}

/** Waits, unless the caller no longer does. */
function unlessAborted<T>(wanted: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return wanted;
  return new Promise((resolve, reject) => {
    // The reason is the caller's own, whatever it is.
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', stop);
    void wanted.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

function asideOf(server: Server, settings: CodexSettings): Aside {
  // Few calls are asked anything.
  let over: AbortController | undefined;
  let isActive = true;
  return {
    event: (event, value) => {
      if (event === 'session') return begun(value, server, settings, () => isActive);
      if (event !== 'interrupt') return;
      over ??= new AbortController();
      void reply(value as unknown as Interrupt, server, settings, over.signal);
    },
    over: () => {
      isActive = false;
      over?.abort();
    },
  };
}

/** Has a worker and a spare thread started for conversations that begin with these settings. */
export async function prepare(
  specification: 'v3' | 'v4',
  modelId: string,
  settings: CodexSettings,
  lease: Lease,
): Promise<void> {
  // Any words will do: nothing is said.
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hello.' }] }];
  const asked = { specification, modelId, options: { prompt } as Asked['options'], generate: false };
  await ask(await lease.server(settings), 'POST', '/v1/language-model/prepare', requestOf(asked, settings, 'never'));
}

async function compactionOf(asked: Asked, { compaction }: CodexSettings): Promise<'always' | 'never' | undefined> {
  if (typeof compaction !== 'function') return compaction;
  const { prompt } = asked.options as { prompt?: unknown };
  return (await compaction({ prompt })) ? 'always' : 'never';
}

function requestOf(asked: Asked, settings: CodexSettings, compaction?: string): Record<string, unknown> {
  const { thread, toolTimeoutMs, answerTimeoutMs, interruptTimeoutMs, idleTimeoutMs, turnTimeoutMs } = settings;
  const { strictCompaction } = settings;
  const tools = Object.entries(settings.tools ?? {}).map(([name, tool]) => ({
    name,
    description: tool.description ?? name,
    inputSchema: tool.inputSchema,
  }));
  return {
    specification: asked.specification,
    modelId: asked.modelId,
    generate: asked.generate,
    options: jsonOfOptions(asked.options),
    settings: {
      thread,
      callbacks: callbackKinds(settings),
      sessionAtOnce: settings.onSession !== undefined,
      tools,
      toolTimeoutMs,
      answerTimeoutMs,
      interruptTimeoutMs,
      idleTimeoutMs,
      turnTimeoutMs,
      compaction,
      strictCompaction,
      ...placeOf(settings),
    },
  };
}

/** Where Codex runs, and as whom. */
export function placeOf({ backend, codexHome, env, appServer }: CodexSettings): Record<string, unknown> {
  return { backend, codexHome, env, appServer };
}

async function reply(
  interrupt: Interrupt,
  server: Server,
  settings: CodexSettings,
  signal: AbortSignal,
): Promise<void> {
  const answer = await answered(interrupt, settings, signal);
  if (signal.aborted || (await told(interrupt, answer, server, settings, signal))) return;
  // It did not fit, and the question would wait for ever.
  await told(interrupt, refusal(interrupt, 'the answer did not fit the question'), server, settings, signal);
}

/** Whether the question needs no further answer. */
async function told(
  interrupt: Interrupt,
  answer: Answer,
  server: Server,
  settings: CodexSettings,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await ask(server, 'POST', `/v1/interrupts/${encodeURIComponent(interrupt.id)}/answer`, answer);
    return true;
  } catch (error) {
    // An answer to a turn that has just ended is nobody's loss.
    if (signal.aborted) return true;
    tell(settings, error);
    const code = APICallError.isInstance(error) ? (error.data as Problem | undefined)?.code : undefined;
    return code === 'interrupt_over' || code === 'interrupt_answered';
  }
}

function begun(value: Record<string, unknown>, server: Server, settings: CodexSettings, isActive: () => boolean): void {
  if (settings.onSession === undefined) return;
  const call = `/v1/language-model/calls/${encodeURIComponent(String(value['callId']))}`;
  const session: CodexSession = {
    threadId: String(value['threadId']),
    turnId: String(value['turnId']),
    isActive,
    steer: async (input) => {
      await ask(server, 'POST', `${call}/steer`, typeof input === 'string' ? { text: input } : { input });
    },
    interrupt: async () => {
      await ask(server, 'POST', `${call}/interrupt`, {});
    },
  };
  try {
    settings.onSession(session);
  } catch (error) {
    tell(settings, error);
  }
}

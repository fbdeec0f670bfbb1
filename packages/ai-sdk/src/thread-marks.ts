// Which thread a conversation goes on in is read from its messages, and those may come from a browser. So what
// names a thread is signed on its way out, and believed on its way in only with that signature.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

import { InvalidArgumentError } from '@ai-sdk/provider';

import { OPTION_KEYS } from './check-settings.js';
import { processWide } from './process-wide.js';
import type { CodexSettings } from './settings.js';

/** Names a thread, a turn in it, and digests of what the thread was told. */
interface ThreadMark {
  threadId?: unknown;
  turnId?: unknown;
  marks?: unknown;
  signature?: unknown;
}

/** Holds the key where the settings have none. */
export const SECRET_VARIABLE = 'BINDERY_THREAD_SECRET';

/** How many threads of one conversation the app is asked about; a forger could name any number. */
const MOST_THREADS = 16;

export const REFUSED_MARK =
  'the messages name a thread without a valid signature (forged, of another owner or provider, or signed by another ' +
  'process without a common `threadSecret`); that thread was not used';

/** Signs and checks what names threads, for one provider and owner. */
export class ThreadMarks {
  readonly #key: string | Buffer;
  readonly #scope: string;
  #last: { text: string; signature: string } | undefined;

  constructor(readonly settings: CodexSettings) {
    this.#key = settings.threadSecret ?? secretOfEnvironment() ?? processWide('thread-key/1', () => randomBytes(32));
    this.#scope = scopeOf(settings);
  }

  /** Signs the metadata of a part, in place. */
  sign(part: unknown): void {
    const metadata = (part as { providerMetadata?: { codex?: ThreadMark } } | null)?.providerMetadata?.codex;
    if (typeof metadata?.threadId === 'string') metadata.signature = this.#signature(metadata);
  }

  /** Whether a thread was signed for the same provider and owner. */
  #isSigned(mark: ThreadMark): boolean {
    if (typeof mark.threadId !== 'string' || typeof mark.signature !== 'string') return false;
    const given = Buffer.from(mark.signature);
    const right = Buffer.from(this.#signature(mark));
    return given.length === right.length && timingSafeEqual(given, right);
  }

  #signature({ threadId, turnId, marks }: ThreadMark): string {
    const text = sorted([this.#scope, threadId, turnId ?? null, marks ?? null]);
    // The parts of an answer are all of one turn.
    if (this.#last?.text !== text) {
      const signature = createHmac('sha256', this.#key).update(text).digest('base64url');
      this.#last = { text, signature };
    }
    return this.#last.signature;
  }

  /** Names a thread for a process that only remembers its own; two providers or owners have different names. */
  seal(threadId: string): string {
    return this.#signature({ threadId });
  }

  /**
   * The prompt without the threads that nobody vouches for; how many marks were taken out. A thread that the
   * server's own code names is trusted.
   */
  async admit(prompt: unknown, named: unknown): Promise<{ prompt: unknown; refused: number }> {
    if (!Array.isArray(prompt)) return { prompt, refused: 0 };
    const authorized = await this.#authorized(prompt);
    let refused = 0;
    const believes = (mark: ThreadMark): boolean => {
      if (mark.threadId !== undefined && mark.threadId === named) return true;
      const believed = authorized === undefined ? this.#isSigned(mark) : authorized.has(mark.threadId);
      if (!believed) refused += 1;
      return believed;
    };
    const messages = prompt.map((message: unknown) => withOptions(message, (own) => admitted(own, believes)));
    return { prompt: messages, refused };
  }

  /** The threads that the app's own check allows, if it has one. */
  async #authorized(prompt: unknown[]): Promise<Set<unknown> | undefined> {
    if (this.settings.authorizeThread === undefined) return undefined;
    const named = new Map<string, boolean>();
    for (const message of prompt.toReversed()) {
      withOptions(message, (own) => {
        const { threadId } = own as ThreadMark;
        if (typeof threadId === 'string') named.set(threadId, named.get(threadId) === true || this.#isSigned(own));
        return own;
      });
    }
    const allowed = new Set<unknown>();
    for (const [threadId, signed] of [...named].slice(0, MOST_THREADS)) {
      if (await isAuthorized(this.settings, threadId, signed)) allowed.add(threadId);
    }
    return allowed;
  }
}

/** Whether a thread may be used; without a check of the app's own, whether it was signed. */
export async function isAuthorized(
  { authorizeThread, owner }: CodexSettings,
  threadId: string,
  signed: boolean,
): Promise<boolean> {
  if (authorizeThread === undefined) return signed;
  const answer: unknown = await authorizeThread({ threadId, signed, ...(owner === undefined ? {} : { owner }) });
  // Anything but a clear yes is a no.
  return answer === true;
}

/** A thread runs with what it was started with: one of another provider's might be less guarded. */
function scopeOf({ thread, codexHome, appServer, owner }: CodexSettings): string {
  const { cwd, sandbox, sandboxPolicy, approvalPolicy, approvalsReviewer } = thread ?? {};
  return sorted([
    'v1', owner ?? null, codexHome ?? null, appServer?.url ?? null,
    { cwd, sandbox, sandboxPolicy, approvalPolicy, approvalsReviewer },
  ]);
}

function secretOfEnvironment(): string | undefined {
  const secret = process.env[SECRET_VARIABLE];
  if (secret === undefined || secret.length >= 32) return secret;
  throw new InvalidArgumentError({ argument: SECRET_VARIABLE, message: `${SECRET_VARIABLE} must have at least 32 characters` });
}

function admitted(own: Record<string, unknown>, believes: (mark: ThreadMark) => boolean): Record<string, unknown> {
  const { threadId, turnId, marks, signature, ...rest } = own as ThreadMark & Record<string, unknown>;
  if (threadId === undefined && turnId === undefined && marks === undefined && signature === undefined) return own;
  if (!believes({ threadId, turnId, marks, signature })) return rest;
  return {
    ...rest,
    threadId,
    ...(turnId === undefined ? {} : { turnId }),
    ...(marks === undefined ? {} : { marks }),
  };
}

/** A message with its own options, and those of its parts, replaced. */
function withOptions(
  message: unknown,
  replace: (own: Record<string, unknown>) => Record<string, unknown>,
): unknown {
  if (message === null || typeof message !== 'object') return message;
  const { content } = message as { content?: unknown };
  const parts = Array.isArray(content) ? content.map((part: unknown) => replaced(part, replace)) : content;
  const whole = replaced(message, replace) as object;
  return parts === undefined ? whole : { ...whole, content: parts };
}

function replaced(value: unknown, replace: (own: Record<string, unknown>) => Record<string, unknown>): unknown {
  if (value === null || typeof value !== 'object') return value;
  const { providerOptions } = value as { providerOptions?: unknown };
  if (providerOptions === null || typeof providerOptions !== 'object') return value;
  const options: Record<string, unknown> = { ...providerOptions };
  for (const key of OPTION_KEYS) {
    const own = options[key];
    if (own !== null && typeof own === 'object') options[key] = replace(own as Record<string, unknown>);
  }
  return { ...value, providerOptions: options };
}

/** JSON whose keys are in order: a database may have kept them in another. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

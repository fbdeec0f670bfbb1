// The session handle in the words of other providers.

import type { CodexSession, CodexSettings } from './settings.js';

/** Something to add to a turn, as Codex's own protocol has it. */
export type AppServerInput =
  | AppServerText
  | AppServerImage
  | AppServerLocalImage
  | AppServerReference;

/** Words. */
export interface AppServerText {
  /** What it is. */
  type: 'text';
  /** The words. */
  text: string;
  /** Marked places in them, which only people are shown. */
  text_elements?: unknown[];
}

/** An image by its address. */
export interface AppServerImage {
  /** What it is. */
  type: 'image';
  /** A `data:` address. */
  url?: string;
  /** The same. */
  imageUrl?: string;
}

/** An image on the disk. */
export interface AppServerLocalImage {
  /** What it is. */
  type: 'localImage';
  /** Where it is. */
  path: string;
}

/** A skill to use, or a file to mention; a text must come with it. */
export interface AppServerReference {
  /** What it is. */
  type: 'skill' | 'mention';
  /** Its name. */
  name: string;
  /** Where it is. */
  path: string;
}

/** The session handle under its old names. */
export interface AppServerSession {
  /** The thread. */
  threadId: string;
  /** The turn. */
  turnId: string;
  /** Whether the call still runs. */
  isActive: () => boolean;
  /** Says something to the turn while it runs. Throws where the call is over. */
  injectMessage: (input: string | AppServerInput[]) => Promise<void>;
  /** Stops the turn, if it still runs. */
  interrupt: () => Promise<void>;
}

/** The callback in our words. */
export function sessionOf(told: ((session: AppServerSession) => unknown) | undefined): CodexSettings['onSession'] {
  if (told === undefined) return undefined;
  return (session) => {
    // One that gives a promise is not waited for, and what it throws must not end the process.
    void Promise.resolve(told(handleOf(session))).catch((error: unknown) => {
      process.emitWarning(`onSessionCreated failed: ${String(error)}`, 'BinderyWarning');
    });
  };
}

function handleOf({ threadId, turnId, isActive, steer, interrupt }: CodexSession): AppServerSession {
  return {
    threadId,
    turnId,
    isActive,
    injectMessage: async (input) => {
      if (!isActive()) throw new Error('the session is no longer active');
      await steer(typeof input === 'string' ? input : partsOf(input));
    },
    interrupt: async () => {
      if (isActive()) await interrupt();
    },
  };
}

type Part = { type: string; providerOptions?: Record<string, unknown> } & Record<string, unknown>;

/** Codex's input items as parts of a user message; what stands for a file or skill goes with the text. */
function partsOf(input: AppServerInput[]): Part[] {
  const parts = input.flatMap((item): Part[] => {
    switch (item.type) {
      case 'text':
        return [{ type: 'text', text: item.text }];
      case 'image':
        return [{ type: 'file', mediaType: 'image/*', data: item.url ?? item.imageUrl ?? '' }];
      case 'localImage':
        return [{ type: 'file', mediaType: 'image/*', data: '', providerOptions: { codex: { localPath: item.path } } }];
      default:
        return [];
    }
  });
  const named = (type: 'skill' | 'mention'): { name: string; path: string }[] =>
    input.flatMap((item) => (item.type === type ? [{ name: item.name, path: item.path }] : []));
  const [skills, mentions] = [named('skill'), named('mention')];
  if (skills.length + mentions.length === 0) return parts;
  const text = parts.find(({ type }) => type === 'text');
  if (text === undefined) throw new TypeError('injectMessage: a skill or a mention needs a text beside it');
  text.providerOptions = { codex: { skills, mentions } };
  return parts;
}

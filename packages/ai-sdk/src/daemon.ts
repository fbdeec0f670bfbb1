// A `bindery serve` of our own: one per process and kind, ends with the process.

import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

import { ask } from './ask.js';
import { findBindery } from './binary.js';
import { BinderyError, parsed } from './errors.js';
import type { Server } from './server.js';
import { processWide } from './process-wide.js';
import { SECRET_VARIABLE } from './thread-marks.js';
import type { CodexSettings } from './settings.js';

/** What a daemon is started with; equal ones share a process. */
type Kind = Pick<CodexSettings, 'bindery' | 'codex' | 'backend'>;

/** By their kind. */
const running = processWide('daemons/1', () => new Map<string, Daemon>());

/** The daemon of these settings, if one runs. */
export function runningDaemon(kind: Kind): Daemon | undefined {
  const found = running.get(keyOf(kind));
  return found?.alive === true ? found : undefined;
}

/** The daemon of these settings, started if none runs. */
export function daemonFor(kind: Kind): Daemon {
  const found = runningDaemon(kind);
  if (found !== undefined) return found;
  const daemon = new Daemon(kind);
  running.set(keyOf(kind), daemon);
  return daemon;
}

function keyOf({ bindery, codex, backend }: Kind): string {
  return JSON.stringify([bindery, codex, backend]);
}

const START_MS = 30_000;

export class Daemon {
  alive = true;
  /** How many use it. */
  users = 0;
  readonly #ready: Promise<Server>;
  #doubted = false;
  #proof: Promise<boolean> | undefined;
  #child: ChildProcess | undefined;
  #gone: Promise<void> = Promise.resolve();

  constructor(kind: Kind) {
    this.#ready = this.#start(kind);
    // Whoever asks is told; nobody asking is no reason to bring the process down.
    this.#ready.catch(() => {
      this.alive = false;
    });
  }

  /** It cut an answer. It may be dead, and this process not told yet. */
  doubt(): void {
    this.#doubted = true;
  }

  /** Where it listens; nothing if it was doubted, and rightly: then another is needed. */
  async server(): Promise<Server | undefined> {
    const server = await this.#ready;
    if (!this.#doubted) return server;
    this.#proof ??= answers(server).finally(() => {
      this.#proof = undefined;
    });
    if (!(await this.#proof)) {
      this.#letGo();
      return undefined;
    }
    this.#doubted = false;
    return server;
  }

  /** Ends it, and waits until it is gone. */
  async end(): Promise<void> {
    // Whoever waits for the end must not be ended by having nothing else to do.
    if (this.#child !== undefined) hold(this.#child);
    this.#letGo();
    await this.#gone;
  }

  #letGo(): void {
    this.alive = false;
    this.#child?.stdin?.end();
  }

  async #start(kind: Kind): Promise<Server> {
    const child = spawn(findBindery(kind.bindery), argumentsOf(kind), {
      // The daemon ends when its standard input does, whatever becomes of us.
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
      // Codex has the daemon's environment and its commands have Codex's: they must not be able to sign threads.
      env: { ...process.env, [SECRET_VARIABLE]: undefined },
    });
    this.#child = child;
    this.#gone = new Promise((resolve) => child.once('close', () => resolve()));
    const errors = lastWords(child);
    child.once('close', () => {
      this.alive = false;
    });
    // A pipe to a process that just ended breaks; `close` tells the story.
    child.stdin.on('error', () => undefined);
    const server = await announced(child, errors);
    release(child);
    return server;
  }
}

function argumentsOf({ codex, backend }: Kind): string[] {
  const own = ['serve', '--listen', '127.0.0.1:0', '--exit-with-parent', '--ephemeral', '--announce'];
  if (codex !== undefined) own.push('--codex', codex);
  if (backend !== undefined) own.push('--backend', backend);
  return own;
}

const PROOF_MS = 5_000;

/** Whether somebody answers there. */
async function answers(server: Server): Promise<boolean> {
  try {
    await ask(server, 'GET', '/healthz', undefined, AbortSignal.timeout(PROOF_MS));
    return true;
  } catch {
    return false;
  }
}

/** The daemon must not keep an app alive that has nothing else to do. */
function release(child: ChildProcess): void {
  child.unref();
  for (const pipe of pipesOf(child)) pipe?.unref?.();
}

/** The opposite of `release`. */
function hold(child: ChildProcess): void {
  child.ref();
  for (const pipe of pipesOf(child)) pipe?.ref?.();
}

/** Pipes to a child are sockets, whatever their type says. */
function pipesOf(child: ChildProcess): ({ ref?: () => void; unref?: () => void } | null)[] {
  return [child.stdin, child.stdout, child.stderr] as never[];
}

/** The last lines of standard error, kept short. */
function lastWords(child: ChildProcess): () => string {
  let words = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-4000);
  });
  return () => words.trim();
}

function announced(child: ChildProcess, errors: () => string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const fail = (message: string, cause?: unknown): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      const words = errors();
      reject(
        new BinderyError(
          words === '' ? message : `${message}: ${words}`,
          'daemon_did_not_start',
          undefined,
          cause === undefined ? undefined : { cause },
        ),
      );
    };
    const timer = setTimeout(() => fail(`\`bindery serve\` was not ready in ${START_MS} ms`), START_MS);
    child.once('error', (cause) => fail(`\`bindery serve\` could not be started`, cause));
    child.once('close', (code, signal) => fail(`\`bindery serve\` ended (${signal ?? code})`));
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const server = parsed(line) as Partial<Server> | undefined;
      if (typeof server?.url !== 'string' || typeof server.token !== 'string') return;
      clearTimeout(timer);
      resolve({ url: server.url, token: server.token });
    });
  });
}

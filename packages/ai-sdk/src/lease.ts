// What a provider uses: its end is the end of its own calls, and of daemons that nobody else uses.

import type { Answer } from './connection.js';
import { daemonFor, runningDaemon, type Daemon } from './daemon.js';
import type { Server } from './server.js';
import type { CodexSettings } from './settings.js';

export class Lease {
  readonly #daemons = new Set<Daemon>();
  /** On their way. */
  readonly #answers = new Set<Answer>();

  /** The server of these settings: the given one, or one of our own. */
  async server(settings: CodexSettings): Promise<Server> {
    if (settings.server !== undefined) return settings.server;
    for (;;) {
      const daemon = daemonFor(settings);
      this.#join(daemon);
      const server = await daemon.server();
      if (server !== undefined) return server;
    }
  }

  /** Keeps an answer until it is over. */
  hold(answer: Answer): void {
    this.#answers.add(answer);
    answer.onOver = (cut) => {
      this.#answers.delete(answer);
      if (cut) for (const daemon of this.#daemons) daemon.doubt();
    };
  }

  /** Cuts the answers that are on their way, and ends the daemons that nobody else uses. */
  async end(settings: CodexSettings): Promise<void> {
    for (const answer of [...this.#answers]) answer.abandon();
    const daemons = new Set(this.leave());
    // A task of `codexRun` may have started it and be over.
    const own = settings.server === undefined ? runningDaemon(settings) : undefined;
    if (own !== undefined) daemons.add(own);
    const unused = [...daemons].filter((daemon) => daemon.users === 0);
    await Promise.all(unused.map((daemon) => daemon.end()));
  }

  /** Uses no daemon any longer; gives those that it used. */
  leave(): Daemon[] {
    const left = [...this.#daemons];
    this.#daemons.clear();
    for (const daemon of left) daemon.users -= 1;
    return left;
  }

  #join(daemon: Daemon): void {
    if (this.#daemons.has(daemon)) return;
    for (const other of this.#daemons) if (!other.alive) this.#daemons.delete(other);
    this.#daemons.add(daemon);
    daemon.users += 1;
  }
}

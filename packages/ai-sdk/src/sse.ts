// Server-sent events out of bytes.

export interface ServerEvent {
  event: string;
  data: string;
}

/** Takes bytes as they come and gives the events that they complete. */
export class EventFeed {
  readonly #decoder = new TextDecoder();
  #rest = '';

  push(bytes: Uint8Array): ServerEvent[] {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const events: ServerEvent[] = [];
    let from = 0;
    for (let end = this.#rest.indexOf('\n\n'); end >= 0; end = this.#rest.indexOf('\n\n', from)) {
      const event = eventOf(this.#rest.slice(from, end));
      from = end + 2;
      if (event !== undefined) events.push(event);
    }
    this.#rest = this.#rest.slice(from);
    return events;
  }
}

function eventOf(block: string): ServerEvent | undefined {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    else if (line.startsWith('event:')) event = line.slice(6).trim();
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n') };
}

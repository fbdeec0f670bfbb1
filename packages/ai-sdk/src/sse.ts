// Server-sent events out of text.

export interface ServerEvent {
  event: string;
  data: string;
}

/** Takes text as it comes and gives the events that they complete. */
export class EventFeed {
  #rest = '';

  push(text: string): ServerEvent[] {
    this.#rest += text;
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

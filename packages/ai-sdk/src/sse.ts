// Server-sent events out of bytes. The consumer's pace is the stream's: nothing is read ahead.

export interface ServerEvent {
  event: string;
  data: string;
}

/** Ends when the bytes end; an unfinished event at the end is not given. */
export async function* eventsOf(bytes: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  const reader = bytes.getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      let from = 0;
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n', from)) {
        const event = eventOf(rest.slice(from, end));
        from = end + 2;
        if (event !== undefined) yield event;
      }
      rest = rest.slice(from);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
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

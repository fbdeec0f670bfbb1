// The conversation and the box to write in.

import { useEffect, useRef, useState } from 'react';
import { useChat } from '@ai-sdk/react';
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { Tool } from './Tool.jsx';

export function Chat() {
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useChat({
    // Once every question is answered, the conversation goes on by itself.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const busy = status === 'submitted' || status === 'streaming';
  const end = useRef(null);
  useEffect(() => {
    // In braces: React calls what an effect returns, and some browsers return a promise here.
    end.current?.scrollIntoView({ block: 'end' });
  }, [messages, status]);
  return (
    <main>
      <header>
        <h1>Codex</h1>
        <span className={`status ${status}`}>{busy ? 'working' : status}</span>
      </header>
      <section className="messages">
        {messages.length === 0 && <p className="empty">Ask about the project, or have something done.</p>}
        {messages.map((message) => (
          <Message key={message.id} message={message} answer={addToolApprovalResponse} />
        ))}
        {status === 'submitted' && <p className="waiting">Thinking…</p>}
        {error && <p className="error" role="alert">{error.message}</p>}
        <div ref={end} />
      </section>
      <Composer busy={busy} send={(text) => sendMessage({ text })} stop={stop} />
    </main>
  );
}

function Message({ message, answer }) {
  return (
    <article className={message.role}>
      {message.parts.map((part, index) => (
        <Part key={index} part={part} answer={answer} />
      ))}
    </article>
  );
}

function Part({ part, answer }) {
  if (part.type === 'text') return part.text === '' ? null : <p className="text">{part.text}</p>;
  if (part.type === 'reasoning') return part.text === '' ? null : <p className="reasoning">{part.text}</p>;
  if (part.type === 'dynamic-tool' || part.type.startsWith('tool-')) return <Tool part={part} answer={answer} />;
  return null;
}

function Composer({ busy, send, stop }) {
  const [text, setText] = useState('');
  const submit = (event) => {
    event.preventDefault();
    if (busy || text.trim() === '') return;
    send(text);
    setText('');
  };
  return (
    <form onSubmit={submit}>
      <input aria-label="Message" placeholder="Message" value={text} onChange={(event) => setText(event.target.value)} autoFocus />
      {busy ? <button type="button" className="stop" onClick={stop}>Stop</button> : <button type="submit">Send</button>}
    </form>
  );
}

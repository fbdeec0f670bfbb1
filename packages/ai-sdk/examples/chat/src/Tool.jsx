// One row for everything Codex does: what it is, how it stands, and what may be decided.

export function Tool({ part, answer }) {
  const output = outcome(part);
  const state = stateOf(part, output);
  const name = part.toolName ?? part.type.slice('tool-'.length);
  return (
    <div className={`tool ${state.kind}`}>
      <div className="row">
        <span className="label">{LABELS[name] ?? name}</span>
        <code className="what">{what(name, part.input)}</code>
        <span className="state">{state.words}</span>
      </div>
      {name === 'codex_file_change' && <Changes changes={part.input?.changes ?? []} />}
      {name === 'codex_command_execution' && <Output text={output?.aggregatedOutput ?? output?.output} />}
      {part.state === 'approval-requested' && <Decision id={part.approval.id} answer={answer} />}
    </div>
  );
}

const LABELS = { codex_command_execution: 'Run', codex_file_change: 'Change', codex_web_search: 'Search' };

/** In full: whoever approves must see exactly what would happen. */
function what(name, input) {
  if (name === 'codex_command_execution') return input?.command ?? '';
  if (name === 'codex_file_change') return (input?.changes ?? []).map(({ path }) => path).join('\n');
  return input === undefined ? '' : JSON.stringify(input);
}

/** The result; one that failed is told as text. */
function outcome(part) {
  if (part.state === 'output-available') return part.output;
  if (part.state !== 'output-error') return undefined;
  try {
    return JSON.parse(part.errorText);
  } catch {
    return { status: 'failed', output: part.errorText };
  }
}

function stateOf(part, output) {
  if (part.state === 'approval-requested') return { kind: 'asked', words: 'asks' };
  if (part.state === 'approval-responded') return { kind: 'running', words: part.approval.approved ? 'allowed' : 'denied' };
  if (part.state === 'output-denied' || output?.status === 'declined') return { kind: 'denied', words: 'denied' };
  if (part.state === 'output-error') return { kind: 'failed', words: output?.exitCode == null ? 'failed' : `exit ${output.exitCode}` };
  if (part.state === 'output-available' && output?.status !== 'inProgress') return { kind: 'done', words: 'done' };
  return { kind: 'running', words: 'running' };
}

function Decision({ id, answer }) {
  return (
    <div className="decision">
      <button className="approve" onClick={() => answer({ id, approved: true })}>Approve</button>
      <button className="deny" onClick={() => answer({ id, approved: false })}>Deny</button>
    </div>
  );
}

function Output({ text }) {
  return text ? <pre className="output">{text}</pre> : null;
}

function Changes({ changes }) {
  return changes.map(({ path, kind, diff }) => (
    <pre className="diff" key={path}>
      {lines(kind?.type, diff).map((line, index) => (
        <span key={index} className={line.kind}>{line.text}</span>
      ))}
    </pre>
  ));
}

/** A new or deleted file comes as its text, a changed one as a diff. */
function lines(kind, diff) {
  const texts = diff.replace(/\n$/, '').split('\n');
  if (kind === 'add') return texts.map((text) => ({ kind: 'added', text: `+${text}` }));
  if (kind === 'delete') return texts.map((text) => ({ kind: 'removed', text: `-${text}` }));
  return texts.map((text) => ({ kind: KINDS[text[0]] ?? 'same', text }));
}

const KINDS = { '+': 'added', '-': 'removed', '@': 'place' };

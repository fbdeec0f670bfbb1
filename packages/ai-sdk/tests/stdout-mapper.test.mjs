// The mapper in process gives what `bindery map` gives, whatever is said and however it is cut.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { describe } from 'node:test';

import { createCodexStdoutMapper } from '@bindery/ai-sdk/stdout-mapper';

const { BINDERY_BIN: program, BINDERY_FIXTURES: fixtures } = process.env;
if (!program || !fixtures) throw new Error('BINDERY_BIN and BINDERY_FIXTURES must be set');

const line = (event) => `${JSON.stringify(event)}\n`;
const pushed = (event) => createCodexStdoutMapper().push(line(event)).map((text) => JSON.parse(text));

describe('the documented cases, by a plain mapper', () => {
  const CASES = [
    [{ type: 'session.created', id: 'sess_123', model: 'o4-mini' }, { type: 'init', session_id: 'sess_123', modelId: 'o4-mini' }],
    [{ type: 'message.output_text.delta', delta: 'Hello' }, { type: 'message', role: 'assistant', content: 'Hello', delta: true }],
    [{ type: 'message.output_text.delta' }, { type: 'message', role: 'assistant', content: '', delta: true }],
    [{ type: 'message.output_text.done', text: 'Hello world' }, { type: 'message', role: 'assistant', content: 'Hello world', delta: false }],
    [{ type: 'error', message: 'API rate limited' }, { type: 'stderr', content: 'API rate limited' }],
    [{ type: 'error', code: 7 }, { type: 'stderr', content: '{"type":"error","code":7}' }],
    [{ type: 'thread.started', thread_id: 't' }, { type: 'init', session_id: 't' }],
  ];
  for (const [event, want] of CASES) test(`${JSON.stringify(event)} is mapped`, () => assert.deepEqual(pushed(event), [want]));

  test('response.completed, what is unknown and what is no JSON are left out', () => {
    assert.deepEqual(pushed({ type: 'response.completed', usage: {} }), []);
    assert.deepEqual(pushed({ type: 'some.unknown.event' }), []);
    assert.deepEqual(createCodexStdoutMapper().push('not json\n'), []);
  });

  test('several events in one chunk, one event in several', () => {
    const event = line({ type: 'message.output_text.delta', delta: 'Hi' });
    assert.equal(createCodexStdoutMapper().push(event + event).length, 2);
    const mapper = createCodexStdoutMapper();
    assert.deepEqual(mapper.push(event.slice(0, 10)), []);
    const [said] = mapper.push(event.slice(10));
    assert.ok(said.endsWith('\n'));
    assert.equal(JSON.parse(said).content, 'Hi');
  });

  test('flush gives the rest, and nothing where there is none', () => {
    const mapper = createCodexStdoutMapper();
    mapper.push(JSON.stringify({ type: 'message.output_text.delta', delta: 'end' }));
    assert.deepEqual(mapper.flush().map((text) => JSON.parse(text).content), ['end']);
    assert.deepEqual(mapper.flush(), []);
    assert.deepEqual(mapper.push(line({ type: 'error', message: 'late' })), []);
    assert.deepEqual(createCodexStdoutMapper().flush(), []);
  });

  test('a bad end is told by who knows of it', () => {
    const told = (exit) => createCodexStdoutMapper().flush(exit).map((text) => JSON.parse(text).content);
    assert.deepEqual(told({ code: 0 }), []);
    assert.deepEqual(told({ code: 3 }), ['the process ended with exit code 3 before the turn did']);
    assert.deepEqual(told({ code: null, signal: 'SIGKILL' }), ['the process was ended by SIGKILL']);
    assert.deepEqual(told({ cause: 'aborted', detail: 'by ann' }), ['the run was stopped: by ann']);
  });
});

/** What nobody recorded: broken, strange, huge, doubled. */
const ODD = [
  'warning: "half a quote',
  '\ufeff{"type":"thread.started","thread_id":"a\\u0062c"}\u0085',
  '{"type":"thread.started"}', '{"type":7}', '{"hue":7}', '[1]', '7', 'null', '{', '{"type":"hologram","item":{"type":"x"}}',
  '{"type":"item.completed","item":3}', '{"type":"item.completed"}', '{"type":"item.completed","item":{"id":"i","type":"hologram"}}',
  '{"type":"item.completed","item":{"type":"reasoning","text":"t"}}',
  '{ "ty\\u0070e" : "item.started" , "item" : { "id" : "w" , "type" : "web_search" , "id" : "ws" , "query" : "" } }',
  '{"type":"item.completed","item":{"id":"w","type":"web_search","id":"ws","query":"q","action":{"type":"open_page","url":"u"}}}',
  '{"type":"item.started","item":{"id":"m","type":"mcp_tool_call","server":"s\\"x","tool":"t","arguments":{"n":12345678901234567890, "f":1.0,"g":[1e999]},"status":"in_progress"}}',
  '{"type":"item.completed","item":{"id":"m","type":"mcp_tool_call","server":"s\\"x","tool":"t","result":{"content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]},"error":{"code":7},"status":"mystery"}}',
  '{"type":"item.completed","item":{"id":"n","type":"mcp_tool_call","server":"s","tool":"t","result":{"content":[{"text":7}]},"status":"completed"}}',
  '{"type":"item.completed","item":{"id":"c","type":"command_execution","command":"x","aggregated_output":"\\ud83d \\ud83d\\ude00 \u2028 \\u001b","exit_code":9223372036854775807,"status":"completed"}}',
  '{"type":"item.completed","item":{"id":"d","type":"command_execution","command":"x","exit_code":1.5,"status":"inProgress"}}',
  '{"type":"item.completed","item":{"id":"f","type":"file_change","changes":[{"path":"a","kind":"add"},{"path":7}],"status":"declined"}}',
  '{"type":"item.completed","item":{"id":"g","type":"collab_tool_call","tool":"wait","agents_states":{"b":{"status":"done","message":"m"},"a":{"status":"running"}},"prompt":7}}',
  '{"type":"item.updated","item":{"id":"p","type":"todo_list","items":[{"text":"a","completed":true}]}}',
  '{"type":"item.updated","item":{"id":"p","type":"todo_list","items":[{"text":"a","completed":true}]}}',
  '{"type":"item.updated","item":{"id":"p","type":"todo_list","items":[{"step":"a"}]}}',
  '{"type":"item.completed","item":{"id":"e","type":"error","message":["no"]}}',
  '{"type":"error","message":"Re-connecting... 1/2"}', '{"type":"error","message":"first"}', '{"type":"error","message":{"a":1}}',
  '{"type":"turn.completed","usage":{"input_tokens":18446744073709551615,"output_tokens":2}}',
  '{"type":"turn.completed","usage":{"input_tokens":-1}}', '{"type":"turn.completed","usage":{"input_tokens":7.0}}',
  '{"type":"item.started","item":{"id":"o","type":"command_execution","command":"sleep"}}',
  '{"type":"turn.failed","error":{"code":7}}', '{"type":"turn.started"}',
  '{"type":"session.created","id":7,"model":"m"}', '{"model":"m","provider":"p","workdir":"/w"}', '{"prompt":"do"}',
  '{"id":"0","msg":{"type":"exec_command_begin","call_id":"c","command":["bash","-lc","echo \'hi\'",""],"cwd":"/w"}}',
  '{"id":"0","msg":{"type":"exec_command_output_delta","call_id":"c","chunk":"b25lCg=="}}',
  '{"id":"0","msg":{"type":"exec_command_output_delta","call_id":"c","chunk":[116,195,182]}}',
  '{"id":"0","msg":{"type":"exec_command_output_delta","call_id":"c","chunk":"?"}}',
  '{"id":"0","msg":{"type":"exec_command_end","call_id":"nobody","stdout":"a","stderr":"b\\n","exit_code":2}}',
  '{"id":"0","msg":{"type":"patch_apply_begin","call_id":"p","changes":{"b":{"update":{"unified_diff":"d","move_path":"m"}},"a":{"add":{"content":"x"}},"c":"delete"}}}',
  '{"id":"0","msg":{"type":"mcp_tool_call_end","call_id":"q","invocation":{"server":"s","tool":"t","arguments":null},"result":{"Ok":{"content":[],"isError":true}}}}',
  '{"id":"0","msg":{"type":"mcp_tool_call_end","call_id":"r","invocation":7,"result":{"Err":"no"}}}',
  '{"id":"0","msg":{"type":"mcp_tool_call_end","call_id":"s","invocation":{},"result":[1]}}',
  '{"id":"0","msg":{"type":"token_count","input_tokens":5,"output_tokens":-2}}',
  '{"id":"0","msg":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9}}}}',
  '{"id":"0","msg":{"type":"plan_update","plan":[{"step":"a","status":"in_progress"}],"explanation":"e"}}',
  '{"id":"0","msg":{"type":"stream_error","message":"x; retrying 1/2"}}', '{"id":"0","msg":{"type":"background_event"}}',
  '{"id":"0","msg":{"type":"hologram"}}', '{"id":"0","msg":{"type":"error","message":7}}', `{"type":"long","x":"${'ä'.repeat(3000)}"}`,
].join('\n');

/** Recordings of every version, and what nobody recorded. */
function streams() {
  const found = new Map([['odd', Buffer.from(ODD)], ['broken', Buffer.from([0xff, 0x7b, 0x0a, 0x22, 0xe2, 0x80, 0x0a, 0xc3])]]);
  const folder = join(fixtures, 'exec');
  for (const version of readdirSync(folder)) {
    for (const name of readdirSync(join(folder, version))) found.set(`${version}/${name}`, readFileSync(join(folder, version, name)));
  }
  assert.ok(found.size > 500, `${found.size} streams`);
  return found;
}

function mapped(options, bytes, size, exit) {
  const mapper = createCodexStdoutMapper(options);
  const lines = [];
  for (let at = 0; at < bytes.length; at += size) lines.push(...mapper.push(bytes.subarray(at, at + size)));
  return [...lines, ...mapper.flush(exit)].join('');
}

/** The words for what is no JSON are the parser's own. */
const plain = (text) => text.replace(/("type":"unknown","tag":"[^"]*","why":)"(?:[^"\\]|\\.)*"/g, (whole, start) =>
  / at line \d|the line is no |is no object|: not a /.test(whole) ? `${start}"…"` : whole);

function byProgram(file, args) {
  return new Promise((resolve, reject) => {
    execFile(program, ['map', file, ...args], { maxBuffer: 2 ** 28 }, (error, stdout) => {
      // 1 says that the run failed.
      if (error && error.code !== 1) reject(error);
      else resolve(stdout);
    });
  });
}

/** Does the work for all, a few at a time. */
async function each(entries, work) {
  const left = [...entries];
  await Promise.all(Array.from({ length: 6 }, async () => {
    for (let entry = left.pop(); entry !== undefined; entry = left.pop()) await work(...entry);
  }));
}

test('every recording is mapped as the program maps it, in both dialects', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'mapper-'));
  t.after(() => rm(folder, { recursive: true }));
  await each(streams(), async (name, bytes) => {
    const file = join(folder, name.replaceAll('/', '-'));
    writeFileSync(file, bytes);
    const full = await byProgram(file, ['--exit-code', '1', '--model', 'm', '--baseline', '{"input_tokens":3}']);
    const options = { dialect: 'full', model: 'm', baseline: { input_tokens: 3 } };
    assert.equal(plain(mapped(options, bytes, Infinity, { code: 1 })), plain(full), name);
    const compat = await byProgram(file, ['--compat', '--resumed']);
    assert.equal(mapped({ dialect: 'compat', baseline: 'unknown' }, bytes, Infinity, {}), compat, name);
  });
});

test('no recording is mapped otherwise when it is cut, at any byte and in any letter', () => {
  for (const [name, bytes] of streams()) {
    const whole = mapped({ dialect: 'full' }, bytes, Infinity);
    for (const size of [1, 3, 7, 64]) assert.equal(mapped({ dialect: 'full' }, bytes, size), whole, `${name} by ${size}`);
    const mapper = createCodexStdoutMapper({ dialect: 'full' });
    const letters = Array.from(bytes.toString(), (letter) => mapper.push(letter)).flat();
    assert.equal([...letters, ...mapper.flush()].join(''), whole, `${name} as text`);
  }
});

test('a line over the limit is told, and the next one read', () => {
  const long = line({ type: 'error', message: 'ä'.repeat(100) });
  for (const size of [1, 50, Infinity]) {
    const said = mapped({ dialect: 'full', lineLimit: 100 }, Buffer.from(`${long}{"type":"turn.completed"}\n`), size, { code: 0 });
    const [unknown, result] = said.trim().split('\n').map((text) => JSON.parse(text));
    assert.deepEqual([unknown.why, unknown.bytes], ['the line is longer than 100 bytes', Buffer.byteLength(long) - 1]);
    assert.equal(result.status, 'success');
  }
});

test('no more than a bound of calls is open', () => {
  const begun = Array.from({ length: 5000 }, (_, n) => line({ type: 'item.started', item: { id: `${n}`, type: 'command_execution', command: 'x' } }));
  const events = mapped({ dialect: 'full' }, Buffer.from(begun.join('')), 4096).trim().split('\n').map((text) => JSON.parse(text).type);
  assert.deepEqual(['tool_use', 'tool_result'].map((type) => events.filter((found) => found === type).length), [5000, 5000]);
});

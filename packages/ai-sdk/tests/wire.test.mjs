// What may come over the wire: answers in every shape HTTP/1.1 allows, cut anywhere, and no answers.

import assert from 'node:assert/strict';
import net from 'node:net';
import test from 'node:test';
import { runInNewContext } from 'node:vm';

import { APICallError } from 'ai';
import { BinderyError, createCodex } from '@bindery/ai-sdk';

import { soon, until } from './support/stage.mjs';

const PARTS = [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta: 'Grüße, 🜁 and €' },
  { type: 'text-end', id: '1' },
];
const EVENTS = [...PARTS.map((part) => `data: ${JSON.stringify(part)}\n\n`), 'data: [DONE]\n\n'].join('');
const TYPE = 'content-type: text/event-stream';

const counted = (more = '') => `HTTP/1.1 200 OK\r\n${TYPE}\r\n${more}content-length: ${Buffer.byteLength(EVENTS)}\r\n\r\n${EVENTS}`;

/** In chunks of so many bytes, which care nothing for letters. */
function chunked(size, extension = '', trailers = '') {
  const bytes = Buffer.from(EVENTS);
  const chunks = [Buffer.from(`HTTP/1.1 200 OK\r\n${TYPE}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n`)];
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = bytes.subarray(at, at + size);
    chunks.push(Buffer.from(`${chunk.length.toString(16).toUpperCase()}${extension}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...chunks, Buffer.from(`0${extension}\r\n${trailers}\r\n`)]);
}

/** A server that does to each request what the test says, for as long as the test acts. */
async function serving(answer, act, path = '') {
  const seen = { connections: 0, requests: [] };
  const sockets = new Set();
  const server = net.createServer((socket) => {
    seen.connections += 1;
    sockets.add(socket);
    let rest = '';
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      rest += bytes.toString('latin1');
      const head = rest.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/.exec(rest)?.[1]);
      if (head < 0 || rest.length < head + 4 + length) return;
      seen.requests.push(rest.slice(0, head + 4 + length));
      rest = rest.slice(head + 4 + length);
      answer(socket, seen.requests.length);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}${path}`;
  const codex = createCodex({ server: { url, token: 'secret' } });
  try {
    await act({ codex, model: codex('x'), seen });
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

/** Every part of a call. */
async function called(model, more = {}) {
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Grüß Gott' }] }];
  const { stream, response } = await soon(model.doStream({ prompt, ...more }), 'an answer');
  const parts = [];
  const read = async () => {
    for await (const part of stream) parts.push(part);
  };
  await soon(read(), 'its end');
  return { parts, headers: response.headers };
}

const SHAPES = {
  counted: counted(),
  'counted, with a header twice': counted('x-one: a\r\nX-One: b\r\n'),
  'up to the end of the connection': `HTTP/1.0 200 OK\r\n${TYPE}\r\n\r\n${EVENTS}`,
  'after "go on"': `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${counted()}`,
  'one chunk': chunked(1 << 20),
  'chunks of one byte': chunked(1),
  'chunks with extensions and trailers': chunked(7, ';name="value"', 'x-sum: 1\r\nx-more: 2\r\n'),
};

for (const [name, bytes] of Object.entries(SHAPES)) {
  test(`an answer is read: ${name}`, async () => {
    const answer = (socket) => {
      socket.write(bytes);
      if (name.startsWith('up to')) socket.end();
    };
    await serving(answer, async (server) => {
      const { parts, headers } = await called(server.model);
      assert.deepEqual(parts, PARTS);
      assert.equal(headers['content-type'], 'text/event-stream');
      if (name.includes('twice')) assert.equal(headers['x-one'], 'a, b');
    });
  });
}

test('wherever the bytes are divided, the answer is the same', async () => {
  const bytes = chunked(11, ';x', 'x-sum: 1\r\n');
  const answer = (socket, request) => {
    socket.setNoDelay(true);
    if (request === 1) return void slowly(socket, bytes);
    socket.write(bytes.subarray(0, request * 3));
    setTimeout(() => socket.write(bytes.subarray(request * 3)), 2);
  };
  await serving(answer, async (server) => {
    for (let request = 1; request < bytes.length / 3; request += 1) {
      assert.deepEqual((await called(server.model)).parts, PARTS, `divided at ${request * 3}`);
    }
    // An answer that is complete leaves its connection to the next; some go on before it is.
    assert.ok(server.seen.connections < 20, `${server.seen.connections} connections`);
    assert.match(server.seen.requests[0], /^POST \/v1\/language-model\/stream HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\n/);
    assert.match(server.seen.requests[0], /\r\nauthorization: Bearer secret\r\n/);
    assert.match(Buffer.from(server.seen.requests[0], 'latin1').toString(), /Grüß Gott/);
  });
});

async function slowly(socket, bytes) {
  for (const byte of bytes) {
    socket.write(Buffer.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const NONSENSE = {
  'no HTTP': 'SSH-2.0-OpenSSH\r\n\r\n',
  'a header without a name': 'HTTP/1.1 200 OK\r\n: x\r\n\r\n',
  'a length that is none': 'HTTP/1.1 200 OK\r\ncontent-length: 12x\r\n\r\n',
  'a head without an end': `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`,
};

for (const [name, bytes] of Object.entries(NONSENSE)) {
  test(`nonsense is told in the call: ${name}`, async () => {
    const answer = (socket) => socket.write(bytes);
    await serving(answer, async (server) => {
      // A head may be good and what it promises be none.
      const told = called(server.model).then(({ parts }) => Promise.reject(parts.find(({ type }) => type === 'error').error));
      await assert.rejects(told, (error) => error instanceof BinderyError || APICallError.isInstance(error));
      await until(() => server.seen.connections === 1, 'it is not asked again');
    });
  });
}

const CUTS = {
  'a chunk without a length': chunked(1 << 20).toString('latin1').replace(/\r\n\r\n[0-9A-F]+\r\n/, '\r\n\r\nxyz\r\n'),
  'a chunk that is longer than it said': chunked(1 << 20).toString('latin1').replace(/\r\n\r\n[0-9A-F]+\r\n/, '\r\n\r\n5\r\n'),
  'the end before the end': chunked(1 << 20).subarray(0, 150),
  'an event that is no JSON': counted().replace('{"type":"text-start"', '{"type":"text-st rt'),
  'an event that is no object': counted().replace(/data: \{"type":"text-end".*/, (line) => `data: 1${' '.repeat(line.length - 7)}`),
};

for (const [name, bytes] of Object.entries(CUTS)) {
  test(`a broken answer is an error and an end: ${name}`, async () => {
    const answer = (socket) => socket.end(bytes, 'latin1');
    await serving(answer, async (server) => {
      assert.deepEqual(endOf((await called(server.model)).parts), ['error stream_cut', 'finish error']);
      const prompt = [{ role: 'user', content: [{ type: 'text', text: 'x' }] }];
      await assert.rejects(soon(server.model.doGenerate({ prompt }), 'its end'), (error) => error.code === 'stream_cut');
    });
  });
}

/** The last two parts, in short. */
function endOf(parts) {
  return parts.slice(-2).map(({ type, error, finishReason }) => `${type} ${error?.code ?? finishReason?.unified}`);
}

test('a kept connection that was closed meanwhile costs nothing but another one', async () => {
  const answer = (socket, request) => {
    // The second request meets a connection that is just being closed.
    if (request === 2) socket.destroy();
    else socket.write(chunked(64));
  };
  await serving(answer, async (server) => {
    for (let call = 0; call < 3; call += 1) assert.deepEqual((await called(server.model)).parts, PARTS);
    assert.deepEqual([server.seen.connections, server.seen.requests.length], [2, 4]);
  });
});

test('a new connection that is closed without a word is not tried again', async () => {
  const answer = (socket) => socket.destroy();
  await serving(answer, async (server) => {
    await assert.rejects(called(server.model), /no answer from/);
    assert.equal(server.seen.requests.length, 1);
  });
});

test('a refusal keeps its words, and the connection', async () => {
  const problem = JSON.stringify({ title: 'Not now', detail: 'The daemon is busy.', code: 'busy', retryable: true });
  const answer = (socket) => {
    socket.write(`HTTP/1.1 503 Busy\r\ncontent-length: ${problem.length}\r\n\r\n${problem}`);
  };
  await serving(answer, async (server) => {
    for (let call = 0; call < 2; call += 1) {
      await assert.rejects(called(server.model), (error) => {
        assert.deepEqual([error.statusCode, error.isRetryable], [503, true]);
        assert.match(error.message, /is busy/);
        return true;
      });
    }
    assert.equal(server.seen.connections, 1);
  });
});

test('an abort ends the call and its connection, before the answer and within it', async () => {
  let closed = 0;
  for (const begun of ['', chunked(64).subarray(0, 120)]) {
    const answer = (socket) => {
      socket.once('close', () => (closed += 1));
      socket.write(begun);
    };
    await serving(answer, async (server) => {
      const abort = new AbortController();
      const call = called(server.model, { abortSignal: abort.signal });
      call.catch(() => undefined);
      await until(() => server.seen.requests.length === 1, 'it was asked');
      abort.abort(new Error('enough'));
      await assert.rejects(soon(call, 'its end'), /enough/);
      await until(() => closed > 0, 'the connection is closed');
      closed = 0;
    });
  }
});

test('a shutdown cuts the calls of its provider, before the answer and within it, and asks nothing again', async () => {
  for (const begun of ['', chunked(64).subarray(0, 120)]) {
    // The first call leaves a connection that is used again.
    const answer = (socket, request) => socket.write(request === 1 ? chunked(64) : begun);
    await serving(answer, async (server) => {
      await called(server.model);
      const call = called(server.model);
      call.catch(() => undefined);
      await until(() => server.seen.requests.length === 2, 'it was asked');
      // What has begun may be on its way still.
      await new Promise((resolve) => setTimeout(resolve, 50));
      await soon(server.codex.shutdown(), 'the shutdown');
      if (begun === '') await assert.rejects(soon(call, 'its end'), (error) => error.code === 'daemon_ended');
      else assert.deepEqual(endOf((await soon(call, 'its end')).parts), ['error stream_cut', 'finish error']);
      assert.equal(server.seen.requests.length, 2);
    });
  }
});

test('a server may stand below a path', async () => {
  const answer = (socket) => socket.write(chunked(64));
  for (const path of ['/agents/codex', '/agents/codex/']) {
    const act = async (server) => {
      assert.deepEqual((await called(server.model)).parts, PARTS);
      assert.match(server.seen.requests[0], /^POST \/agents\/codex\/v1\/language-model\/stream HTTP/);
    };
    await serving(answer, act, path);
  }
});

test('an address that is none is told in the call', async () => {
  for (const url of ['here', 'ftp://127.0.0.1', '127.0.0.1:4747']) {
    const codex = createCodex({ server: { url, token: 'x' } });
    for (const asked of [called(codex('x')), codex.listModels()]) {
      await assert.rejects(asked, (error) => error.code === 'bad_server' && error.message.includes(url));
    }
  }
});

test('bytes and addresses are told, whatever place their classes are from', async () => {
  const answer = (socket) => socket.write(chunked(64));
  await serving(answer, async (server) => {
    const elsewhere = (made) => runInNewContext(made, { URL });
    const data = [
      new Uint8Array([1, 2, 3]), Buffer.from([0, 1, 2, 3]).subarray(1), new Uint8Array([1, 2, 3]).buffer,
      elsewhere('new Uint8Array([1, 2, 3])'), elsewhere('new Uint8Array([1, 2, 3]).buffer'),
      new URL('http://x/y'), elsewhere('new Date(0)'),
    ];
    const content = data.map((one) => ({ type: 'file', mediaType: 'image/png', data: one }));
    await called(server.model, { prompt: [{ role: 'user', content }] });
    const [, body] = server.seen.requests[0].split('\r\n\r\n');
    const told = JSON.parse(body).options.prompt[0].content.map((part) => part.data);
    assert.deepEqual(told, [...Array(5).fill('AQID'), 'http://x/y', '1970-01-01T00:00:00.000Z']);
  });
});

test('many at once have a connection each, and the next ones use those', async () => {
  const answer = (socket) => setTimeout(() => socket.write(chunked(64)), 50);
  await serving(answer, async (server) => {
    for (let round = 0; round < 2; round += 1) {
      const all = await Promise.all(Array.from({ length: 20 }, () => called(server.model)));
      for (const { parts } of all) assert.deepEqual(parts, PARTS);
    }
    assert.equal(server.seen.connections, 20);
  });
});

test('a reader that does not read holds up the sender, and loses nothing', async () => {
  const delta = JSON.stringify({ type: 'text-delta', id: '1', delta: 'x'.repeat(10_000) });
  const events = Buffer.from(`data: ${delta}\n\n`.repeat(3000) + 'data: [DONE]\n\n');
  let buffered = 0;
  const answer = (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${events.length}\r\n\r\n`);
    socket.write(events);
    const look = setInterval(() => (buffered = socket.writableLength), 10);
    socket.once('drain', () => clearInterval(look));
  };
  await serving(answer, async (server) => {
    const prompt = [{ role: 'user', content: [{ type: 'text', text: 'x' }] }];
    const { stream } = await soon(server.model.doStream({ prompt }), 'an answer');
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.ok(buffered > 10_000_000, `${buffered} of ${events.length} bytes wait with the sender`);
    let length = 0;
    for await (const part of stream) length += part.delta.length;
    assert.equal(length, 3000 * 10_000);
  });
});

import { writeFileSync } from 'node:fs';

/** Without it a guest that collects garbage while it starts has a timer for 8 s, so that no unload is confirmed. */
export const noEngineTimers = '--no-memory-reducer';

/**
 * A runtime for tests that speaks the framed protocol. `value.do` selects what a run does. With `script`, the run
 * executes a text as the body of an async function and answers with its result.
 */
const source = `
import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
const socket = new Socket({ fd: 3 });
const require = createRequire('/');
function frame(type, id, body) {
  const text = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const head = Buffer.alloc(9);
  head.writeUInt32LE(text.length, 0);
  head.writeUInt8(type, 4);
  head.writeUInt32LE(id, 5);
  return Buffer.concat([head, text]);
}
const write = (fd, text) => {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try { rest = rest.subarray(writeSync(fd, rest)); } catch (error) { if (error.code !== 'EAGAIN') throw error; }
  }
};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const finish = (type, id, body) => socket.write(Buffer.concat([frame(type, id, body), frame(6, id, {})]));
async function act(id, value) {
  switch (value.do) {
    case 'log': for (const [fd, text] of value.texts) write(fd, text); return finish(4, id, { ok: true });
    case 'print': {
      const block = Buffer.alloc(1 << 20, (value.line ?? 'x'.repeat(99)) + '\\n');
      for (let left = value.bytes; left > 0; left -= block.length) write(1, block.subarray(0, Math.min(left, block.length)));
      return finish(4, id, { ok: true });
    }
    case 'sleep': await sleep(value.ms); return finish(4, id, { slept: value.ms });
    case 'hang': return undefined;
    case 'deafen': deaf = true; return finish(4, id, {});
    case 'spoil': spoiled = true; return finish(4, id, {});
    case 'error': return finish(5, id, { error: value.error });
    case 'exit': write(1, 'going\\n'); return process.exit(value.code ?? 1);
    case 'crash': return process.kill(process.pid, 'SIGKILL');
    case 'string': return finish(4, id, 'text');
    case 'exhaust': { const held = []; for (;;) held.push(Buffer.alloc(1 << 20, 1)); }
    case 'big': return finish(4, id, { a: 'x'.repeat(value.bytes - 8) });
    case 'bye': return socket.write(Buffer.concat([frame(4, id, { ok: true }), frame(6, id, {}), frame(8, 0, {})]));
    case 'unknown-type': return socket.write(frame(99, id, {}));
    case 'unasked': return socket.write(frame(4, id + 1000, {}));
    case 'malformed': return socket.write(frame(5, id, Buffer.from('{')) );
    case 'huge-frame': { const head = Buffer.alloc(9); head.writeUInt32LE(65 * 1024 * 1024, 0); head.writeUInt8(4, 4); head.writeUInt32LE(id, 5); return socket.write(head); }
    case 'no-log-frame': return socket.write(frame(4, id, { ok: true }));
    case 'split': {
      const bytes = Buffer.concat([frame(4, id, { a: 'é'.repeat(10) }), frame(6, id, {})]);
      for (const byte of bytes) { socket.write(Buffer.from([byte])); await sleep(1); }
      return undefined;
    }
    case 'script': {
      const body = new (Object.getPrototypeOf(async function () {}).constructor)('require', 'spawn', 'sleep', value.script);
      try { return finish(4, id, { value: (await body(require, spawn, sleep)) ?? null }); }
      catch (error) { return finish(4, id, { thrown: error.code ?? error.message }); }
    }
    default: return finish(4, id, value);
  }
}
let received = Buffer.alloc(0);
let spoiled = false;
let deaf = false;
socket.on('data', (chunk) => {
  received = Buffer.concat([received, chunk]);
  while (received.length >= 9 && received.length >= 9 + received.readUInt32LE(0)) {
    const end = 9 + received.readUInt32LE(0);
    const [type, id, body] = [received.readUInt8(4), received.readUInt32LE(5), received.toString('utf8', 9, end)];
    received = received.subarray(end);
    if (type === 2) {
      const request = JSON.parse(body);
      if (request.code === 'print') write(1, 'from init\\n');
      if (request.code === 'fail') finish(5, id, { error: 'it does not load' });
      else if (request.code === 'exit') process.exit(3);
      else if (request.code === 'bye') socket.write(frame(8, 0, {}), () => process.exit(1));
      else if (request.code !== 'hang') finish(4, id, { ok: true });
    } else if (type === 3) void act(id, JSON.parse(body).value);
    else if (type === 10) {
      if (spoiled && !deaf) finish(5, id, { error: 'It is spoilt.' });
      else if (!deaf) finish(4, id, { ok: true });
    } else if (type === 9) {
      if (!spoiled) finish(4, id, { ok: true, verifyUs: 1 });
      else finish(5, id, { error: 'The action left behind: threads.' });
    }
  }
});
socket.on('end', () => process.exit(0));
socket.write(frame(1, 0, { version: 1, kind: 'test:1', unload: true }));
`;

/** Writes the program to `path`. */
export function writeGuestProgram(path: string): void {
  writeFileSync(path, source);
}

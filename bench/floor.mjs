// The least that a platform of this shape costs: Node's own HTTP server hands each request to a process that runs one at a
// time, and answers what the process answers. No names, credentials, limits, logs or records.
// Usage: node bench/floor.mjs nodejs|python [PORT]
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const programs = {
  nodejs: [process.execPath, [fileURLToPath(new URL('floor-function.mjs', import.meta.url))]],
  python: ['python3', ['-S', fileURLToPath(new URL('floor_function.py', import.meta.url))]],
};
const [program, args] = programs[process.argv[2] ?? 'nodejs'];
// As many as there are on two cores while 64 connections wait: more processes would only wait for each other.
const processes = 8;
const headerBytes = 4;

/** Functions' processes that are free, and requests that wait for one, each `{ body, response }`. */
const free = [];
const waiting = [];

function run(socket, { body, response }) {
  socket.response = response;
  const header = Buffer.allocUnsafe(headerBytes);
  header.writeUInt32LE(body.length);
  socket.cork();
  socket.write(header);
  socket.write(body);
  socket.uncork();
}

function startFunction() {
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] });
  const socket = child.stdio[3];
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    if (rest.length < headerBytes || rest.length < headerBytes + rest.readUInt32LE(0)) return;
    const { response } = socket;
    const result = JSON.parse(rest.toString('utf8', headerBytes));
    rest = Buffer.alloc(0);
    const next = waiting.shift();
    if (next === undefined) free.push(socket);
    else run(socket, next);
    const body = JSON.stringify(result);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    response.end(body);
  });
  child.once('exit', () => process.exit(1));
  free.push(socket);
  return child;
}

const children = Array.from({ length: processes }, startFunction);
const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    let value;
    try {
      value = JSON.parse(Buffer.concat(chunks).toString());
    } catch {
      response.writeHead(400).end();
      return;
    }
    const call = { body: Buffer.from(JSON.stringify(value)), response };
    const socket = free.pop();
    if (socket === undefined) waiting.push(call);
    else run(socket, call);
  });
});

server.listen(Number(process.argv[3] ?? 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
process.once('SIGTERM', () => {
  for (const child of children) child.removeAllListeners('exit').kill();
  server.close();
  server.closeAllConnections();
});

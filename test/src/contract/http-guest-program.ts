import { writeFileSync } from 'node:fs';

/** A runtime for tests that speaks OpenWhisk's HTTP protocol, sentinels included. It starts to listen after a delay. */
const source = `
import { createServer } from 'node:http';
const sentinel = 'XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX\\n';
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => { body += chunk; });
  request.on('end', () => {
    const { value } = JSON.parse(body);
    const answer = (status, result, marked = true) => {
      const text = JSON.stringify(result);
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
      response.end(text);
      if (!marked) return;
      process.stdout.write(sentinel);
      process.stderr.write(sentinel);
    };
    if (request.url === '/init') return answer(value.code === 'fail' ? 502 : 200, value.code === 'fail' ? { error: 'no' } : { OK: true }, false);
    switch (value.do) {
      case 'log': console.log('out'); console.error('err'); return answer(200, { ok: true });
      case 'print': process.stdout.write((value.line ?? 'x\\n').repeat(value.bytes / (value.line ?? 'x\\n').length)); return answer(200, { ok: true });
      case 'error': return answer(502, { error: value.error });
      case 'busy': return answer(503, {});
      case 'big': return answer(200, { a: 'x'.repeat(value.bytes - 8) });
      case 'mute': return answer(200, { ok: true }, false);
      case 'string': return answer(200, 'text');
      case 'hang': return undefined;
      case 'sleep': console.log('sleeping'); setTimeout(() => answer(200, { slept: true }), value.ms); return undefined;
      case 'exit': return process.exit(1);
      default: return answer(200, value);
    }
  });
});
setTimeout(() => server.listen(8080), 200);
`;

/** Writes the program to `path`. */
export function writeHttpGuestProgram(path: string): void {
  writeFileSync(path, source);
}

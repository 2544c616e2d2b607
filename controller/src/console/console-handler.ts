// The console's files, as `npm run build` makes them.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Logger } from '@gpuwhisk/common/logging';

/** Where the console is served. */
const consoleRoot = '/console';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=UTF-8',
  '.js': 'text/javascript; charset=UTF-8',
  '.css': 'text/css; charset=UTF-8',
  '.svg': 'image/svg+xml',
};

/** Files of this server only, nothing inline, and in no frame: what functions print is never interpreted. */
const policy = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
  .concat(['script-src', 'style-src', 'img-src', 'connect-src'].map((kind) => `${kind} 'self'`))
  .join('; ');

const securityHeaders = {
  'Content-Security-Policy': policy,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
};

/** A file in memory. */
interface ConsoleFile {
  type: string;
  body: Buffer;
  packed: Buffer;
  tag: string;
}

/** Reads the console's files by path; rejects if it was not built. */
export type ReadConsole = () => Promise<ReadonlyMap<string, Buffer>>;

/** Answers requests below `/console`; false for any other. The files are read once, at the first request. */
export function createConsoleHandler(
  read: ReadConsole,
  logger: Pick<Logger, 'warn'>,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  let files: Promise<Map<string, ConsoleFile>> | undefined;
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?');
    if (path !== consoleRoot && !path.startsWith(`${consoleRoot}/`)) return false;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      refuse(response, 405, 'The console is only read.', { Allow: 'GET, HEAD' });
    } else if (path === consoleRoot) {
      response.writeHead(308, { Location: `${consoleRoot}/`, 'Content-Length': 0 }).end();
    } else {
      files ??= read().then(packed);
      files.then(
        (known) => write(request, response, known.get(path.slice(consoleRoot.length + 1) || 'index.html')),
        (error: unknown) => {
          files = undefined;
          logger.warn({ err: error }, 'the console cannot be read');
          refuse(response, 404, 'The console was not built.');
        },
      );
    }
    return true;
  };
}

/** Files by path, as they are sent. Rejects if there is no page. */
async function packed(contents: ReadonlyMap<string, Buffer>): Promise<Map<string, ConsoleFile>> {
  if (!contents.has('index.html')) throw new Error('the console has no page');
  const files = new Map<string, ConsoleFile>();
  for (const [path, body] of contents) {
    const type = types[extname(path)];
    if (type === undefined) continue;
    const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    files.set(path, { type, body, packed: await promisify(gzip)(body), tag });
  }
  return files;
}

function write(request: IncomingMessage, response: ServerResponse, file: ConsoleFile | undefined): void {
  if (file === undefined) return refuse(response, 404, 'The console has no such file.');
  const isPacked = /\bgzip\b/.test(String(request.headers['accept-encoding']));
  const body = isPacked ? file.packed : file.body;
  const isPage = file.type === types['.html'];
  const headers = {
    ...securityHeaders,
    'Content-Type': file.type,
    ETag: file.tag,
    Vary: 'Accept-Encoding',
    // The names of all other files change with what is in them.
    'Cache-Control': isPage ? 'no-cache' : 'public, max-age=31536000, immutable',
  };
  if (request.headers['if-none-match'] === file.tag) return void response.writeHead(304, headers).end();
  response.writeHead(200, {
    ...headers,
    'Content-Length': body.length,
    ...(isPacked && { 'Content-Encoding': 'gzip' }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function refuse(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  const all = { ...securityHeaders, ...headers, 'Content-Type': 'text/plain; charset=UTF-8' };
  response.writeHead(status, { ...all, 'Content-Length': Buffer.byteLength(text) }).end(text);
}

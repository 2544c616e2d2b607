// Sites of files that a build makes: the console and the documentation.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Logger } from '@gpuwhisk/common/logging';

/** Files of a site by path, each read when it is called for. */
export type SiteFiles = ReadonlyMap<string, () => Promise<Buffer>>;

/** A site below one path of the server. */
export interface Site {
  /** `/console`. */
  root: string;
  /** Its name in messages, at the beginning of a sentence. */
  name: string;
  /** Lists the files. Rejects if the site was not built. */
  list: () => Promise<SiteFiles>;
  /** Whether its style sheets contain pictures (`data:`). */
  hasInlinePictures?: boolean;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=UTF-8',
  '.js': 'text/javascript; charset=UTF-8',
  '.css': 'text/css; charset=UTF-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

/** Folder of the files whose names change with their content. */
const hashedFolder = 'assets/';
const homePage = 'index.html';
const notFoundPage = '404.html';

/** Files of this server only, nothing inline, and in no frame: what functions print is never interpreted. */
function securityHeaders({ hasInlinePictures = false }: Site): Record<string, string> {
  const policy = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    .concat(['script-src', 'style-src', 'connect-src'].map((kind) => `${kind} 'self'`))
    .concat(`img-src 'self'${hasInlinePictures ? ' data:' : ''}`);
  return {
    'Content-Security-Policy': policy.join('; '),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
  };
}

/** A file in memory. */
interface SentFile {
  path: string;
  body: Buffer;
  packed: Buffer;
  tag: string;
}

/** The site that a request's URL belongs to; undefined for other URLs. */
export function siteOf<S extends Pick<Site, 'root'>>(sites: readonly S[], url: string): S | undefined {
  return sites.find(({ root }) => url.startsWith(root) && [undefined, '/', '?'].includes(url[root.length]));
}

/**
 * Answers requests below the site's root; false for any other. Files are listed at the first request, and only listed
 * ones are served. Each is read once and then kept.
 */
export function createSiteHandler(
  site: Site,
  logger: Pick<Logger, 'warn'>,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const security = securityHeaders(site);
  const kept = new Map<string, Promise<SentFile>>();
  let listed: Promise<SiteFiles> | undefined;

  function fileOf(path: string, files: SiteFiles): Promise<SentFile> | undefined {
    const read = files.get(path);
    if (read === undefined || types[extname(path)] === undefined) return undefined;
    const known = kept.get(path) ?? read().then((body) => toSend(path, body));
    kept.set(path, known);
    return known;
  }

  async function answer(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const files = await (listed ??= listOf(site));
    // Pages are named without their ending.
    const file = await (path === '' || path.endsWith('/')
      ? fileOf(path + homePage, files)
      : (fileOf(path, files) ?? fileOf(`${path}.html`, files)));
    const page = file ?? (await fileOf(notFoundPage, files));
    if (page === undefined) refuse(response, security, 404, `${site.name} has no such file.`);
    else send(request, response, security, page, file === undefined ? 404 : 200);
  }

  return (request, response) => {
    const { url = '' } = request;
    if (siteOf([site], url) === undefined) return false;
    const [path = ''] = url.split('?');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      refuse(response, { ...security, Allow: 'GET, HEAD' }, 405, `${site.name} is only read.`);
    } else if (path === site.root) {
      response.writeHead(308, { Location: `${site.root}/`, 'Content-Length': 0 }).end();
    } else {
      answer(path.slice(site.root.length + 1), request, response).catch((error: unknown) => {
        // The site was built again, or is not built yet: the next request reads all of it again.
        listed = undefined;
        kept.clear();
        logger.warn({ err: error }, `${site.root} cannot be read`);
        refuse(response, security, 404, `${site.name} was not built: npm run build makes it.`);
      });
    }
    return true;
  };
}

/** Rejects if there is no page. */
async function listOf(site: Site): Promise<SiteFiles> {
  const files = await site.list();
  if (!files.has(homePage)) throw new Error(`${site.root} has no page`);
  return files;
}

async function toSend(path: string, body: Buffer): Promise<SentFile> {
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { path, body, packed: await promisify(gzip)(body), tag };
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  security: Record<string, string>,
  file: SentFile,
  status: number,
): void {
  const isPacked = /\bgzip\b/.test(String(request.headers['accept-encoding']));
  const body = isPacked ? file.packed : file.body;
  const headers = {
    ...security,
    'Content-Type': types[extname(file.path)],
    ETag: file.tag,
    Vary: 'Accept-Encoding',
    'Cache-Control': file.path.startsWith(hashedFolder) ? 'public, max-age=31536000, immutable' : 'no-cache',
  };
  if (status === 200 && request.headers['if-none-match'] === file.tag)
    return void response.writeHead(304, headers).end();
  response.writeHead(status, {
    ...headers,
    'Content-Length': body.length,
    ...(isPacked && { 'Content-Encoding': 'gzip' }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Answers with a line of text. */
export function refuse(response: ServerResponse, headers: Record<string, string>, status: number, text: string): void {
  const all = { ...headers, 'Content-Type': 'text/plain; charset=UTF-8' };
  response.writeHead(status, { ...all, 'Content-Length': Buffer.byteLength(text) }).end(text);
}

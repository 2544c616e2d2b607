import type { HttpRequest, HttpResponse } from './transport.js';

/** Requests that are made for one, the first included, as in Go's client. */
export const mostRequests = 10;

/**
 * The request that the answer sends the client to, or undefined if it sends it nowhere. As Go's client has it, 301, 302
 * and 303 are followed with GET and no body, 307 and 308 with the request's own, and the key goes to the `first` host
 * and to hosts below it only.
 * @throws Error if the answer's location is no URL.
 */
export function redirected(first: HttpRequest, last: HttpRequest, response: HttpResponse): HttpRequest | undefined {
  const location = headerOf(response, 'location');
  if (location === undefined || ![301, 302, 303, 307, 308].includes(response.status)) return undefined;
  const url = resolve(location, last.url);
  const keepsBody = response.status >= 307;
  const dropped = new Set([
    ...(isBelow(url.hostname, new URL(first.url).hostname) ? [] : ['authorization']),
    ...(keepsBody ? [] : ['content-type']),
  ]);
  const headers = Object.fromEntries(Object.entries(last.headers).filter(([name]) => !dropped.has(name.toLowerCase())));
  if (!keepsBody) return { method: 'GET', url: url.href, headers };
  return { ...last, url: url.href, headers };
}

function resolve(location: string, base: string): URL {
  const url = URL.canParse(location, base) ? new URL(location, base) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new Error(`failed to parse Location header ${JSON.stringify(location)}`);
  }
  return url;
}

function headerOf({ rawHeaders }: HttpResponse, name: string): string | undefined {
  const at = rawHeaders.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name);
  return at < 0 ? undefined : rawHeaders[at + 1];
}

const isBelow = (host: string, parent: string): boolean => host === parent || host.endsWith(`.${parent}`);

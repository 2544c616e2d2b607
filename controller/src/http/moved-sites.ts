// Requests to the API's listener for sites of the console's listener.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { refuse, siteOf } from './static-files.js';
import type { Site } from './static-files.js';

/** Where the console and the documentation are served. */
export interface ConsoleAddress {
  /** Their origin, `http://address:port`. */
  url: string;
  /** Whether the operator has named it: it is then right for every caller. */
  isConfigured: boolean;
}

/**
 * Creates the function that answers requests for a site with the way to it; false for other paths. The way is never
 * made from the request's Host, which callers choose: a caller that knows this host by another name than the listener's
 * is told the port.
 */
export function createMovedHandler(
  sites: readonly Pick<Site, 'root' | 'name'>[],
  address: () => ConsoleAddress | undefined,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    const { url = '', method, headers } = request;
    const site = siteOf(sites, url);
    if (site === undefined) return false;
    const to = address();
    const plain = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };
    if (to === undefined) refuse(response, plain, 404, `${site.name} is off: setting consolePort is false.`);
    else if (method !== 'GET' && method !== 'HEAD')
      refuse(response, { ...plain, Allow: 'GET, HEAD' }, 405, `${site.name} is only read.`);
    else if (to.isConfigured || isCalled(headers.host, to.url))
      refuse(response, { ...plain, Location: to.url + url }, 302, `${site.name} is at ${to.url}${site.root}/`);
    else {
      const { port } = new URL(to.url);
      const way = `${site.name} has an origin of its own: port ${port} of this host, or the one that consoleUrl names.`;
      refuse(response, plain, 404, way);
    }
    return true;
  };
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** Whether a Host header has the host of this URL. */
function isCalled(host: string | undefined, url: string): boolean {
  if (host === undefined || !URL.canParse(`http://${host}`)) return false;
  const [called, own] = [new URL(`http://${host}`).hostname, new URL(url).hostname];
  return called === own || (loopback.test(called) && loopback.test(own));
}

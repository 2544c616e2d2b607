import { isEntityName } from '@gpuwhisk/common/entities/names';
import { apiRoot } from '../http/route.js';
import type { ActionName } from '../entities/action-name.js';

/** How a result becomes an answer. */
export type WebExtension = 'http' | 'json' | 'html' | 'svg' | 'text';

/** What the URL of a web action says. */
export interface WebUrl {
  action: ActionName;
  extension: WebExtension;
  /** What follows the action's name, as it was sent: '' or `/…`. */
  path: string;
  /** What follows the question mark, as it was sent. */
  query: string;
}

const prefix = `${apiRoot}/web/`;
const extensionPattern = /\.(http|json|html|svg|text)$/;

/**
 * Reads `/api/v1/web/{namespace}/{package|default}/{action}[.extension][/path][?query]`; undefined for whatever else.
 * Only the three names are decoded: dots and encoded slashes of the path are the action's business.
 */
export function parseWebUrl(url: string): WebUrl | undefined {
  if (!url.startsWith(prefix)) return undefined;
  const question = url.indexOf('?');
  const path = url.slice(prefix.length, question < 0 ? url.length : question);
  const [namespace, packageName, last] = path.split('/', 3).map(nameOf);
  if (namespace === undefined || packageName === undefined || last === undefined) return undefined;
  const extension = extensionPattern.exec(last)?.[1] as WebExtension | undefined;
  const name = extension === undefined ? last : last.slice(0, -extension.length - 1);
  return {
    action: packageName === 'default' ? { namespace, name } : { namespace, packageName, name },
    extension: extension ?? 'http',
    path: afterThirdSegment(path),
    query: question < 0 ? '' : url.slice(question + 1),
  };
}

/** A segment's name; undefined if it is none. */
function nameOf(segment: string): string | undefined {
  if (!segment.includes('%')) return isEntityName(segment) ? segment : undefined;
  try {
    const decoded = decodeURIComponent(segment);
    return isEntityName(decoded) ? decoded : undefined;
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function afterThirdSegment(path: string): string {
  const second = path.indexOf('/', path.indexOf('/') + 1);
  const third = path.indexOf('/', second + 1);
  return third < 0 ? '' : path.slice(third);
}

/**
 * Where a request for `<namespace>.<domain>` leads: `/x` to the namespace's web actions, `/` to its page
 * `public/index.html`, as OpenWhisk's edge rewrites them; undefined for any other host.
 */
export function vanityUrl(host: string | undefined, url: string, domain: string): string | undefined {
  const name = host?.split(':', 1)[0]?.toLowerCase();
  const suffix = `.${domain.toLowerCase()}`;
  if (name === undefined || !name.endsWith(suffix)) return undefined;
  const namespace = name.slice(0, -suffix.length);
  // One label: what names have beyond letters, digits and hyphens has no place in one.
  if (!/^[0-9a-z-]+$/.test(namespace)) return undefined;
  const question = url.indexOf('?');
  const path = question < 0 ? url : url.slice(0, question);
  const query = question < 0 ? '' : url.slice(question);
  return `${apiRoot}/web/${namespace}${path === '/' ? '/public/index.html' : path}${query}`;
}

import { apiRoot } from '../http/route.js';

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

import { argumentError, messageOf } from '../errors.js';

/**
 * The base of all URLs, `https://host/api`. A host without `http://` or `https://` gets `https://`.
 * @throws WskError if there is no host or it makes no URL.
 */
export function apiBase(apiHost: string): string {
  if (apiHost === '') throw argumentError('An API host must be provided.\n');
  const base = `${/^https?:\/\//.test(apiHost) ? '' : 'https://'}${apiHost}/api`;
  try {
    new URL(base);
  } catch (error) {
    throw argumentError(`parse ${JSON.stringify(base)}: ${messageOf(error)}`);
  }
  return base;
}

/** A path with everything escaped that would end it or be read as something else. */
export function encodePath(path: string): string {
  return encodeURIComponent(path)
    .replace(/%(24|26|2B|2C|2F|3A|3B|3D|40)/g, decodeURIComponent)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** `?name=value&...` in the order of the names; undefined and empty values are left out. */
export function query(options: Record<string, string | number | boolean | undefined>): string {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined && value !== '');
  const sorted = entries
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]): [string, string] => [name, String(value)]);
  return `?${new URLSearchParams(sorted).toString()}`;
}

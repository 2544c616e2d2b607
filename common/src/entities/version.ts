import type { JsonValue } from '../json.js';
import { MalformedError } from './malformed.js';

/** The version of an entity that was written once. */
export const firstVersion = '0.0.1';

/** A version as OpenWhisk reads it: up to three numbers, missing ones 0, not all 0. Throws MalformedError. */
export function readVersion(value: JsonValue): string {
  const text = typeof value === 'string' ? value : '';
  const parts = text === '' ? [] : text.split('.');
  const numbers = [0, 1, 2].map((index) => (index < parts.length ? wholeNumber(parts[index]) : 0));
  if (numbers.some((number) => number === undefined) || numbers.every((number) => number === 0)) {
    throw new MalformedError('semantic version malformed');
  }
  return numbers.join('.');
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** The next patch version: `0.0.1` → `0.0.2`. */
export function bumpPatch(version: string): string {
  const [major = '0', minor = '0', patch = '0'] = version.split('.');
  return `${major}.${minor}.${Number(patch) + 1}`;
}

import type { JsonValue } from '@gpuwhisk/common/json';

/**
 * A copy of `value` as JSON. Numbers that JSON lacks become `{"$number": "NaN"}`, sets `{"$set": [...]}`; fields that are
 * undefined are left out.
 */
export function toPlain(value: unknown): JsonValue {
  if (typeof value === 'number') return Number.isFinite(value) ? value : { $number: String(value) };
  if (typeof value !== 'object' || value === null) return value as JsonValue;
  if (value instanceof Set) return { $set: Array.from(value, toPlain) };
  if (Array.isArray(value)) return value.map((one) => (one === undefined ? null : toPlain(one)));
  const entries = Object.entries(value).filter(([, one]) => one !== undefined && typeof one !== 'function');
  return Object.fromEntries(entries.map(([name, one]) => [name, toPlain(one)]));
}

/** The copy of a value that `toPlain` was given. */
export function fromPlain(value: JsonValue): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(fromPlain);
  const { $number: number, $set: set } = value;
  if (typeof number === 'string') return Number(number);
  if (Array.isArray(set)) return new Set(set.map(fromPlain));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fromPlain(one)]));
}

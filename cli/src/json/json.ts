/**
 * JSON in the CLI. Numbers keep the digits that the user or the server wrote (12345678901234567890 and 1.50 survive a
 * round trip). Objects are maps, so the CLI determines the order of keys.
 */
export type Json = null | boolean | string | number | NumberLiteral | Json[] | JsonMap;
/** An object. */
export type JsonMap = Map<string, Json>;

/** A number as it was written. */
export class NumberLiteral {
  constructor(readonly literal: string) {}
}

/** `value` if it is an object, else an empty one. */
export function asMap(value: Json | undefined): JsonMap {
  return value instanceof Map ? value : new Map();
}

/** `value` if it is a list, else an empty one. */
export function asList(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** `value` as text: strings unchanged, null and undefined as an empty text, other values as JSON. */
export function asText(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : stringify(value);
}

/** `value` as a number; anything else is 0. */
export function asNumber(value: Json | undefined): number {
  if (value instanceof NumberLiteral) return Number(value.literal);
  return typeof value === 'number' ? value : 0;
}

/** A copy whose objects, at every depth, have their keys in order, as wsk prints them. */
export function sortKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!(value instanceof Map)) return value;
  const keys = [...value.keys()].sort();
  return new Map(keys.map((key) => [key, sortKeys(value.get(key) ?? null)]));
}

/** JSON text with `indent` spaces per level; all in one line without `indent`. */
export function stringify(value: Json, indent = 0): string {
  const pieces: string[] = [];
  write(value, indent === 0 ? '' : '\n', ' '.repeat(indent), pieces);
  return pieces.join('');
}

function write(value: Json, lineStart: string, step: string, pieces: string[]): void {
  if (Array.isArray(value)) {
    writeItems('[', ']', value, lineStart, pieces, (item, inner) => write(item, inner, step, pieces), step);
  } else if (value instanceof Map) {
    const colon = step === '' ? ':' : ': ';
    const writeMember = ([key, member]: [string, Json], inner: string): void => {
      pieces.push(quote(key), colon);
      write(member, inner, step, pieces);
    };
    writeItems('{', '}', [...value], lineStart, pieces, writeMember, step);
  } else if (value instanceof NumberLiteral) {
    pieces.push(value.literal);
  } else {
    pieces.push(typeof value === 'string' ? quote(value) : JSON.stringify(value));
  }
}

function writeItems<Item>(
  open: string,
  close: string,
  items: Item[],
  lineStart: string,
  pieces: string[],
  writeItem: (item: Item, inner: string) => void,
  step: string,
): void {
  pieces.push(open);
  items.forEach((item, index) => {
    pieces.push(index === 0 ? '' : ',', lineStart + step);
    writeItem(item, lineStart + step);
  });
  pieces.push(items.length === 0 ? '' : lineStart, close);
}

/** A quoted string; the two line separators are escaped, as Go's encoder does. */
function quote(text: string): string {
  return JSON.stringify(text).replace(/[\u2028\u2029]/g, (c) => (c === '\u2028' ? '\\u2028' : '\\u2029'));
}

/** Members of a request's body; empty lists are left out. */
export function body(members: Record<string, Json | undefined>): JsonMap {
  const given = Object.entries(members).filter(
    (member): member is [string, Json] =>
      member[1] !== undefined && !(Array.isArray(member[1]) && member[1].length === 0),
  );
  return new Map(given);
}

import { argumentError, messageOf, wrapError } from '../errors.js';
import { readTextFile } from '../files.js';
import { asList, asMap, type Json, type JsonMap } from '../json/json.js';
import { parseJson } from '../json/parse.js';

/**
 * Merges the JSON objects of `-p`, `-P` and similar flags; of a repeated key the last value counts.
 * @throws WskError if a text is not a JSON object; the message calls it `noun`.
 */
export function mergeObjects(texts: string[], noun: 'parameter' | 'annotation'): JsonMap {
  try {
    return new Map(texts.flatMap((text) => [...readObject(text)]));
  } catch (error) {
    const shown = `[]string{${texts.map((text) => JSON.stringify(text)).join(', ')}}`;
    throw argumentError(`Invalid ${noun} argument '${shown}': ${messageOf(error)}`);
  }
}

function readObject(text: string): JsonMap {
  const value = parseJson(text);
  if (value instanceof Map) return value;
  if (value === null) return new Map();
  const type = Array.isArray(value) ? 'array' : typeof value === 'object' ? 'number' : typeof value;
  throw new SyntaxError(`json: cannot unmarshal ${type} into Go value of type map[string]interface {}`);
}

/** The form that entities carry parameters and annotations in: `[{"key": ..., "value": ...}]`. */
export function toKeyValues(object: JsonMap): JsonMap[] {
  return [...object].map(([key, value]) => keyValue(key, value));
}

/** One `{"key": ..., "value": ...}`. */
export function keyValue(key: string, value: Json): JsonMap {
  return new Map<string, Json>([
    ['key', key],
    ['value', value],
  ]);
}

/** The value that a list of key-values holds under `key`. */
export function valueOf(list: JsonMap[], key: string): Json | undefined {
  return list.find((item) => item.get('key') === key)?.get('value');
}

/**
 * JSON objects given by `-p KEY VALUE`, `-P FILE` and similar flags, in the order of the command line, still as text.
 */
export interface Pairs {
  parameters: string[];
  annotations: string[];
  feedParameters: string[];
  triggerParameters: string[];
}

interface PairFlag {
  names: string[];
  target: keyof Pairs;
  takes: 'file' | 'pair';
  /** The flag's noun in the error message; without a noun the message stands alone. */
  noun?: string;
}

const pairFlags: PairFlag[] = [
  { names: ['-p', '--param'], target: 'parameters', takes: 'pair', noun: 'parameter' },
  { names: ['-P', '--param-file'], target: 'parameters', takes: 'file', noun: 'parameter' },
  { names: ['-a', '--annotation'], target: 'annotations', takes: 'pair', noun: 'annotation' },
  { names: ['-A', '--annotation-file'], target: 'annotations', takes: 'file', noun: 'annotation' },
  { names: ['-F', '--feed-param'], target: 'feedParameters', takes: 'pair' },
  { names: ['-T', '--trigger-param'], target: 'triggerParameters', takes: 'pair' },
];

/**
 * Takes two sorts of flags out of the command line, before other code reads it: those followed by two words (`-p KEY
 * VALUE`) and those that name a JSON file. The flags may stand anywhere before a `--`; `--param-file=FILE` works too.
 * @throws WskError if a word is missing or a file cannot be read.
 */
export function takePairs(words: string[]): { words: string[]; pairs: Pairs } {
  const pairs: Pairs = { parameters: [], annotations: [], feedParameters: [], triggerParameters: [] };
  const left: string[] = [];
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  const rest = words
    .slice(0, end)
    .flatMap((word) => /^(--(?:param|annotation)-file)=(.*)$/s.exec(word)?.slice(1) ?? [word]);
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const name = word;
    const flag = pairFlags.find((candidate) => candidate.names.includes(name));
    if (flag) pairs[flag.target].push(takeJson(name, flag, rest));
    else left.push(name);
  }
  return { words: [...left, ...words.slice(end)], pairs };
}

function takeJson(name: string, flag: PairFlag, rest: string[]): string {
  const [first, second] = rest.splice(0, flag.takes === 'pair' ? 2 : 1);
  if (first === undefined || (flag.takes === 'pair' && second === undefined)) {
    const problem =
      flag.takes === 'pair'
        ? `Arguments for '${name}' must be a key/value pair`
        : `An argument must be provided for '${name}'`;
    throw argumentError(flag.noun ? `The ${flag.noun} arguments are invalid: ${problem}` : problem);
  }
  return flag.takes === 'file' ? readTextFile(first) : pairToJson(first, second ?? '');
}

/** `{"key": value}`: a value that is not JSON becomes a string whose backslash escapes are decoded, as in wsk. */
function pairToJson(key: string, value: string): string {
  const quotedKey = `"${key.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`;
  return isJson(value) ? `{${quotedKey}: ${value}}` : `{${quotedKey}: "${value}"}`;
}

function isJson(text: string): boolean {
  try {
    parseJson(text, { whole: true });
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw wrapError(error, 'Unable to read a value');
  }
}

/** The feed action that an entity's `feed` annotation names; empty if there is none. */
export function feedOf(entity: JsonMap): string {
  const feed = valueOf(annotationsOf(entity), 'feed');
  return typeof feed === 'string' ? feed : '';
}

/** The annotations of an entity. */
export function annotationsOf(entity: JsonMap): JsonMap[] {
  return asList(entity.get('annotations')).map(asMap);
}

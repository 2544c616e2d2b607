// Files that the user names, and YAML.
import { existsSync, readFileSync, statSync, writeFileSync, type Stats } from 'node:fs';
import { argumentError, messageOf, usageError, wrapError, WskError } from './errors.js';
import { asNumber, NumberLiteral, type Json } from './json/json.js';

/**
 * Reads a file that the user named.
 * @throws WskError with exit code 2 if there is no such file, 1 if it cannot be read.
 */
export function readUserFile(name: string): Buffer {
  const found = lookUp(name);
  if (!found) throw usageError(`File '${name}' is not a valid file or it does not exist`);
  if (found.isDirectory()) throw argumentError(`Unable to read the file '${name}': read ${name}: is a directory`);
  try {
    return readFileSync(name);
  } catch (error) {
    throw argumentError(`Unable to read the file '${name}': ${messageOf(error)}`);
  }
}

/** Size of a file that the user named, bytes; undefined if it cannot be told. */
export function sizeOf(name: string): number | undefined {
  const found = lookUp(name);
  return found?.isFile() === true ? found.size : undefined;
}

/** Like readUserFile, decoded as UTF-8. */
export function readTextFile(name: string): string {
  return readUserFile(name).toString('utf8');
}

/**
 * Writes a file that must not exist yet.
 * @throws WskError with exit code 2 if the file exists or cannot be written.
 */
export function writeNewFile(name: string, content: Buffer): void {
  if (existsSync(name)) throw usageError(`The file '${name}' already exists`);
  try {
    writeFileSync(name, content, { flag: 'wx' });
  } catch (error) {
    throw usageError(`Cannot create file '${name}': ${messageOf(error)}`);
  }
}

function lookUp(name: string): Stats | undefined {
  try {
    return statSync(name, { throwIfNoEntry: false });
  } catch (error) {
    throw wrapError(error, `Cannot access file '${name}'`, { exitCode: 2, showUsage: true });
  }
}

// The YAML library is loaded at its first use, so that wsk starts quickly.

/**
 * Reads YAML 1.1, as OpenWhisk's tools do (`yes` is true, `<<` merges).
 * @throws WskError if the text is malformed or uses aliases excessively.
 */
export async function parseYaml(text: string): Promise<Json> {
  const { parse } = await import('yaml');
  try {
    return toJson(parse(text, { version: '1.1', mapAsMap: true, prettyErrors: true }));
  } catch (error) {
    throw new WskError(messageOf(error));
  }
}

/** The YAML library's value of a document as JSON: keys are text, dates have ISO format. */
export function toJson(value: unknown): Json {
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [String(key), toJson(item)]));
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return new NumberLiteral(String(value));
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') return value;
  return null;
}

/** YAML as OpenWhisk's tools write it: keys in order, lists not indented, lines not folded. */
export async function stringifyYaml(value: Json): Promise<string> {
  const { stringify } = await import('yaml');
  return stringify(toPlain(value), { version: '1.1', sortMapEntries: true, indentSeq: false, lineWidth: 0 });
}

function toPlain(value: Json): unknown {
  if (Array.isArray(value)) return value.map(toPlain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, toPlain(item)]));
  return value instanceof NumberLiteral ? asNumber(value) : value;
}

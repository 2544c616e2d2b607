import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { messageOf, WskError } from '../errors.js';
import { isObject, textOf } from '../migrate/values.js';

/*
 * A backup is compressed lines of JSON: a header, a line for each document with its attachments, and the number of
 * documents. A file without that number is cut off.
 */
const format = 'gpuwhisk-backup';
const version = 1;

/** A document and the database that it belongs to, by the name behind the prefix. */
export interface ArchivedDocument {
  database: string;
  document: JsonObject;
}

/** Writes a backup; `file` appears when the backup is complete. Returns the number of documents. Throws WskError. */
export async function writeArchive(
  file: string,
  about: { createdAt: string; databases: readonly string[] },
  documents: AsyncIterable<ArchivedDocument>,
): Promise<number> {
  let count = 0;
  async function* lines(): AsyncGenerator<string> {
    yield `${JSON.stringify({ format, version, ...about })}\n`;
    for await (const { database, document } of documents) {
      count += 1;
      yield `${JSON.stringify({ database, document })}\n`;
    }
    yield `${JSON.stringify({ documents: count })}\n`;
  }
  const partial = `${file}.partial`;
  try {
    // The archive holds keys: only its owner may read it.
    await pipeline(Readable.from(lines()), createGzip(), createWriteStream(partial, { mode: 0o600, flush: true }));
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new WskError(`Unable to write '${file}': ${messageOf(error)}`);
  }
  return count;
}

/**
 * The documents of a backup. Throws WskError for a file that is no backup, or, after its last document, for one that is
 * cut off.
 */
export async function* readArchive(file: string): AsyncGenerator<ArchivedDocument> {
  let read = 0;
  let complete = false;
  let begun = false;
  for await (const line of linesOf(file)) {
    const value = parse(file, line);
    if (!begun) {
      if (value.format !== format) throw notAnArchive(file);
      if (value.version !== version) {
        throw new WskError(
          `'${file}' is a backup of version ${String(value.version)}; this is for version ${version}.`,
        );
      }
      begun = true;
    } else if (isObject(value.document)) {
      read += 1;
      yield { database: textOf(value.database), document: value.document };
    } else complete = value.documents === read;
  }
  if (!begun) throw notAnArchive(file);
  if (!complete) throw new WskError(`The backup '${file}' is cut off after ${read} documents.`);
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const unpacked = createGunzip();
  const source = createReadStream(file).on('error', (error) => unpacked.destroy(error));
  // A line may be long, since it has code in it: its pieces are joined only once.
  let pieces: string[] = [];
  try {
    for await (const text of source.pipe(unpacked).setEncoding('utf8') as AsyncIterable<string>) {
      const [first = '', ...others] = text.split('\n');
      pieces.push(first);
      for (const next of others) {
        yield pieces.join('');
        pieces = [next];
      }
    }
  } catch (error) {
    throw new WskError(`Unable to read '${file}': ${messageOf(error)}`);
  } finally {
    source.destroy();
  }
  const rest = pieces.join('');
  if (rest !== '') yield rest;
}

function parse(file: string, line: string): JsonObject {
  let value: JsonValue | undefined;
  try {
    value = JSON.parse(line) as JsonValue;
  } catch {
    value = undefined;
  }
  if (!isObject(value)) throw notAnArchive(file);
  return value;
}

function notAnArchive(file: string): WskError {
  return new WskError(`'${file}' is no backup of gpuwhisk.`);
}

import { createHash } from 'node:crypto';
import type { JsonObject } from '@gpuwhisk/common/json';
import { isObject, textOf } from './values.js';

/** Code that lies beside its document. */
export interface CodeReference {
  /** The field of `exec` that refers to it; Java actions once had `jar`. */
  field: 'code' | 'jar';
  /** The name of the attachment. */
  name: string;
  contentType: string;
  /** `sha256-<hex>`; old documents have none. */
  digest: string | undefined;
}

/** Thrown for code that is not in CouchDB, or not what the document says. */
export class CodeError extends Error {
  override name = 'CodeError';
}

/** Where the code of an action's document lies; undefined: in the document itself. Throws CodeError. */
export function codeReference({ exec }: JsonObject): CodeReference | undefined {
  if (!isObject(exec)) return undefined;
  const field = exec.code === undefined ? 'jar' : 'code';
  const reference = exec[field];
  if (!isObject(reference)) return undefined;
  const full = textOf(reference.attachmentName);
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(full)?.[1];
  if (scheme === 'mem') return undefined;
  if (scheme !== undefined && scheme !== 'couch') {
    throw new CodeError(`its code is not in CouchDB but in another store ('${scheme}:')`);
  }
  return {
    field,
    name: scheme === undefined ? full : full.slice(scheme.length + 1),
    contentType: textOf(reference.attachmentType),
    digest: typeof reference.digest === 'string' ? reference.digest : undefined,
  };
}

/** The digest that OpenWhisk writes of code. */
export function digestOf(bytes: Uint8Array): string {
  return `sha256-${createHash('sha256').update(bytes).digest('hex')}`;
}

/** The document with length and digest of its code, by which copies are compared. */
export function withDigest(document: JsonObject, { field }: CodeReference, bytes: Uint8Array): JsonObject {
  const exec = isObject(document.exec) ? document.exec : {};
  const reference = isObject(exec[field]) ? exec[field] : {};
  const described = { ...reference, length: bytes.length, digest: digestOf(bytes) };
  return { ...document, exec: { ...exec, [field]: described } };
}

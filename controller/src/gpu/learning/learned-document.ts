import { createHash } from 'node:crypto';
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';

/** What is learned: of functions, of their samples alone, of measured runs, models of slowdowns, shares of sets, sets to be searched for; and what was decided. */
export type LearnedKind = 'profile' | 'curve' | 'samples' | 'model' | 'quota' | 'demand' | 'decisions';

/** Where something learned is kept. */
export interface LearnedKey {
  kind: LearnedKind;
  /** Within its kind. */
  name: string;
}

/** What is kept of it. */
export interface LearnedText {
  /** The kind of GPU that it holds for; absent: for none in particular. */
  gpuType?: string;
  mode?: DeviceMode;
  text: string;
}

/** What the ids of these documents begin with. */
export const learnedPrefix = 'learned/';
/** Of the texts. What was written by another version is left aside. */
const format = 1;

/** Thrown for a document that is damaged or of another version. */
export class LearnedDocumentError extends Error {
  override name = 'LearnedDocumentError';
}

/** The id of its document. Names may be long: what does not fit is told apart by its digest. */
export function learnedId({ kind, name }: LearnedKey): string {
  const short = name.length <= 400 ? name : `${name.slice(0, 300)}~${digest(name)}`;
  return `${learnedPrefix}${kind}/${short}`;
}

/** The document of something learned, without its revision. */
export function learnedDocument(key: LearnedKey, { gpuType, mode, text }: LearnedText, at: number): StoredDocument {
  return {
    ...{ _id: learnedId(key), kind: key.kind, name: key.name, format, at },
    ...(gpuType !== undefined && { gpuType }),
    ...(mode !== undefined && { mode }),
    sha256: digest(text),
    text,
  };
}

/** Reads what `learnedDocument` gave. Throws LearnedDocumentError. */
export function readLearnedDocument(document: StoredDocument): { key: LearnedKey; text: string } {
  const { kind, name, text, sha256 } = document;
  if (document.format !== format) {
    throw new LearnedDocumentError(`its format is ${JSON.stringify(document.format)} instead of ${format}`);
  }
  if (typeof kind !== 'string' || typeof name !== 'string' || typeof text !== 'string') {
    throw new LearnedDocumentError('it lacks fields');
  }
  if (sha256 !== digest(text)) throw new LearnedDocumentError('it is damaged: its SHA-256 is another');
  return { key: { kind: kind as LearnedKind, name }, text };
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

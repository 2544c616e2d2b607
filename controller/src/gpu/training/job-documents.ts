// Documents of training jobs: their ids, and the parameters in them.
import { LockedParameterError } from '@gpuwhisk/common/entities/parameter-encryption';
import type { UnlockArguments } from '@gpuwhisk/common/entities/parameter-encryption';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { ApiError } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { TrainingJob } from './training-job.js';

/** The ids of the documents of all jobs begin with this. */
export const jobPrefix = 'training-job/';

/** The ids of the documents of a namespace's jobs begin with this. A namespace's name has no slash. */
export function namespacePrefix(namespace: string): string {
  return `${jobPrefix}${namespace}/`;
}

/** The id of a job's document, to which its encrypted parameters are bound. */
export function jobDocumentId({ namespace, id }: Pick<TrainingJob, 'namespace' | 'id'>): string {
  return namespacePrefix(namespace) + id;
}

/** The field of a job's document with the epoch of the leader that wrote it. */
const epochField = 'leaderEpoch';

/** A job and its document. */
export interface Kept {
  job: TrainingJob;
  /** Of the document, '' if there is none. */
  revision: string;
  /** That of the leader that wrote the document; undefined if an earlier version did. */
  epoch?: number;
}

/** The job of a document. */
export function keptOf(document: StoredDocument): Kept {
  const epoch = document[epochField];
  return { job: jobIn(document), revision: String(document._rev), ...(typeof epoch === 'number' && { epoch }) };
}

/** The document of a job that the leader of `epoch` writes. */
export function documentOf(job: TrainingJob, epoch: number, revision = ''): StoredDocument {
  const document = { _id: jobDocumentId(job), ...(revision !== '' && { _rev: revision }), ...job };
  const parameters = storedParameters(job.parameters);
  return { ...document, parameters, [epochField]: epoch } as unknown as StoredDocument;
}

/** The job in a document. Earlier versions kept its parameters as a plain object. */
export function jobIn(document: StoredDocument): TrainingJob {
  const fields = Object.entries(document).filter(([name]) => !name.startsWith('_') && name !== epochField);
  const job = Object.fromEntries(fields) as unknown as TrainingJob;
  const { parameters } = document;
  return isJsonObject(parameters) ? { ...job, parameters: parametersOf(parameters) } : job;
}

/** An object as a list of parameters. */
export function parametersOf(payload: JsonObject): Parameter[] {
  return Object.entries(payload).map(([key, value]) => ({ key, value }));
}

/** The parameters as they are stored: `lockedIn`, the document's id, is left out. */
function storedParameters(parameters: readonly Parameter[]): Parameter[] {
  return parameters.map((parameter) => {
    const stored = { ...parameter };
    delete stored.lockedIn;
    return stored;
  });
}

/** The decrypted parameters of a job as one object. Throws ApiError (400) if a key is missing. */
export function payloadOf(job: TrainingJob, unlock: UnlockArguments): JsonObject {
  const payload = Object.fromEntries(job.parameters.map(({ key, value }) => [key, value]));
  const locked = job.parameters.flatMap(({ key, encryption }) => (encryption === undefined ? [] : [[key, encryption]]));
  const places = locked.map(([key]) => [key, jobDocumentId(job)]);
  try {
    return unlock(payload, Object.fromEntries(locked), Object.fromEntries(places)) as JsonObject;
  } catch (error) {
    if (error instanceof LockedParameterError) throw new ApiError(400, error.message);
    throw error;
  }
}

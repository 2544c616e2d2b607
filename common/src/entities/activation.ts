import type { JsonValue, JsonObject } from '../json.js';
import type { Parameter } from './parameters.js';
import { isJsonObject } from '../json.js';
import type { StoredDocument } from '../store/artifact-store.js';
import { MalformedError, asArray, asNumber, asObject, asString } from './malformed.js';
import { readParameters, writeParameters } from './parameters.js';

/** OpenWhisk's status codes of an activation. */
export const ActivationStatus = {
  success: 0,
  applicationError: 1,
  developerError: 2,
  whiskError: 3,
} as const;
/** One of them. */
export type ActivationStatusCode = (typeof ActivationStatus)[keyof typeof ActivationStatus];

/** The words that the API uses for the status codes, indexed by code. */
export const activationStatusWords = [
  'success',
  'application error',
  'action developer error',
  'whisk internal error',
] as const;

/** The stored form of an activation's response. `size` is the result's length in bytes where known. */
export interface ActivationResponse {
  statusCode: ActivationStatusCode;
  result?: JsonValue;
  size?: number;
}

/** An activation record, as stored (without `_id`, `entityType` and `updated`). Times are epoch ms. */
export interface WhiskActivation {
  namespace: string;
  name: string;
  version: string;
  subject: string;
  activationId: string;
  start: number;
  end: number;
  /** ms, initialization included. */
  duration?: number;
  cause?: string;
  response: ActivationResponse;
  logs: string[];
  publish: boolean;
  annotations: Parameter[];
}

/** The store's id of an activation's record. */
export function activationDocumentId(namespace: string, activationId: string): string {
  return `${namespace}/${activationId}`;
}

/** The document of an activation, as OpenWhisk stores it. `updatedMs`: epoch ms. */
export function activationDocument(activation: WhiskActivation, updatedMs: number): StoredDocument {
  const document = fields(activation, activation.end, activation.duration) as StoredDocument;
  document._id = activationDocumentId(activation.namespace, activation.activationId);
  document.response = { ...activation.response };
  document.entityType = 'activation';
  document.updated = updatedMs;
  return document;
}

/**
 * The fields that documents and the API share; of every invocation, so without copies. Absent ones are undefined,
 * which JSON leaves out.
 */
function fields(activation: WhiskActivation, end: number | undefined, duration: number | undefined): JsonObject {
  const shared: Record<string, JsonValue | undefined> = {
    namespace: activation.namespace,
    name: activation.name,
    version: activation.version,
    subject: activation.subject,
    activationId: activation.activationId,
    start: activation.start,
    end,
    duration,
    cause: activation.cause,
    logs: activation.logs,
    publish: activation.publish,
    annotations: writeParameters(activation.annotations),
  };
  return shared as JsonObject;
}

/** An activation from its document. Throws MalformedError. */
export function readActivation(document: JsonObject): WhiskActivation {
  const { cause, duration, logs = [], publish } = document;
  return {
    namespace: asString(document.namespace, 'namespace malformed'),
    name: asString(document.name, 'entity name malformed'),
    version: asString(document.version, 'semantic version malformed'),
    subject: asString(document.subject, 'subject malformed'),
    activationId: asString(document.activationId, 'The activation id is not valid.'),
    start: asNumber(document.start, 'timestamp malformed'),
    end: asNumber(document.end, 'timestamp malformed'),
    ...(typeof duration === 'number' && { duration }),
    ...(typeof cause === 'string' && { cause }),
    response: readResponse(document.response),
    logs: asArray(logs, 'logs malformed').map((line) => asString(line, 'logs malformed')),
    publish: publish === true,
    annotations: readParameters(document.annotations ?? []),
  };
}

function readResponse(value: JsonValue | undefined): ActivationResponse {
  const { statusCode, result, size } = asObject(value);
  if (!isStatusCode(statusCode)) throw new MalformedError('response malformed');
  return { statusCode, ...(result !== undefined && { result }), ...(typeof size === 'number' && { size }) };
}

function isStatusCode(value: JsonValue | undefined): value is ActivationStatusCode {
  return typeof value === 'number' && activationStatusWords[value] !== undefined;
}

/** A response as the API shows it: `status` and `success` in place of the code. */
export function responseToApi({ statusCode, result, size }: ActivationResponse): JsonObject {
  const shown: Record<string, JsonValue | undefined> = {
    status: activationStatusWords[statusCode],
    success: statusCode === ActivationStatus.success,
    result,
    size,
  };
  return shown as JsonObject;
}

/** The whole record as the API shows it. A trigger's (no end) has neither `end` nor `duration`. */
export function activationToApi(activation: WhiskActivation): JsonObject {
  const { start, end, duration, response } = activation;
  const shown = end === 0 ? fields(activation, undefined, undefined) : fields(activation, end, duration ?? end - start);
  shown.response = responseToApi(response);
  return shown;
}

/** What `result=true` shows of an activation. */
export function activationResult(activation: WhiskActivation): JsonObject | JsonValue[] {
  const { result } = activation.response;
  return isJsonObject(result) || Array.isArray(result) ? result : {};
}

const badRequest = 400;

/** A status code that the action gives, in its error or beside it; what is no number is 400, as in OpenWhisk. */
export function userStatusCode(result: JsonValue | undefined): number | undefined {
  if (!isJsonObject(result)) return undefined;
  const { error } = result;
  const given = (isJsonObject(error) ? error.statusCode : undefined) ?? result.statusCode;
  if (given === undefined) return undefined;
  const code = typeof given === 'number' || typeof given === 'string' ? Math.trunc(Number(given)) : NaN;
  return Number.isFinite(code) ? code : badRequest;
}

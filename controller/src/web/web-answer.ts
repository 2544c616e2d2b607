import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import {
  invalidWebResponse,
  isApiError,
  notAcceptable,
  propertyNotFound,
  responseNotReady,
  webActionFailed,
} from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonValue } from '@gpuwhisk/common/json';
import { activationIdHeader } from '../http/invocation.js';
import { accepts } from '../http/accept.js';
import type { Answer } from '../http/answer.js';
import type { InvokeOutcome } from '../invoke/invoke-service.js';
import { httpAnswer } from './http-result.js';
import { prettyJson } from './pretty-json.js';
import type { WebExtension } from './web-url.js';

/** What the caller of a web action is answered. `accept` is the request's Accept header. */
export function webAnswer(
  outcome: InvokeOutcome,
  extension: WebExtension,
  accept: string | undefined,
  transactionId: string,
): Answer {
  const activationId = outcome.type === 'accepted' ? outcome.activationId : outcome.activation.activationId;
  let answer: Answer;
  try {
    if (outcome.type === 'accepted') throw responseNotReady();
    answer = transcoders[extension](webResult(outcome.activation));
    const { contentType } = answer;
    if (contentType && !accepts(accept, contentType)) throw notAcceptable(contentType);
  } catch (error) {
    if (!isApiError(error)) throw error;
    answer = webErrorAnswer(error, transactionId);
  }
  return { ...answer, headers: [activationIdHeader, activationId, ...(answer.headers ?? [])] };
}

/** The answer that an error stands for, printed as OpenWhisk prints those of web actions. */
export function webErrorAnswer({ status, message, headers }: ApiError, transactionId: string): Answer {
  return {
    status,
    body: prettyJson({ error: message, code: transactionId }),
    headers: Object.entries(headers ?? {}).flat(),
  };
}

/** What is mapped: the result, or what an application error carries. Throws ApiError (400, 404). */
function webResult({ response }: WhiskActivation): JsonValue {
  const { statusCode, result } = response;
  if (statusCode === ActivationStatus.success) return result ?? {};
  if (statusCode !== ActivationStatus.applicationError) throw webActionFailed();
  if (!isJsonObject(result) || result.error === undefined) throw propertyNotFound();
  return result.error;
}

const transcoders: Readonly<Record<WebExtension, (result: JsonValue) => Answer>> = {
  http: httpAnswer,
  json: jsonAnswer,
  html: (result) => stringAnswer(fieldOf(result, 'html'), 'text/html', 'text/html; charset=UTF-8'),
  svg: (result) => stringAnswer(fieldOf(result, 'svg'), 'image/svg+xml', 'image/svg+xml'),
  text: textAnswer,
};

function jsonAnswer(result: JsonValue): Answer {
  if (typeof result !== 'object' || result === null) throw invalidWebResponse('application/json');
  return { status: 200, body: prettyJson(result), contentType: 'application/json' };
}

function stringAnswer(field: JsonValue | undefined, mediaType: string, contentType: string): Answer {
  if (typeof field !== 'string') throw invalidWebResponse(mediaType);
  return { status: 200, body: field, contentType };
}

function textAnswer(result: JsonValue): Answer {
  const field = fieldOf(result, 'text');
  if (field === undefined) throw propertyNotFound();
  const body = typeof field === 'string' ? field : prettyJson(field);
  return { status: 200, body, contentType: 'text/plain; charset=UTF-8' };
}

/** An object's field `body`, else the one named; what is no object is itself the content. */
function fieldOf(result: JsonValue, name: string): JsonValue | undefined {
  if (!isJsonObject(result)) return result;
  return result.body === undefined ? result[name] : result.body;
}

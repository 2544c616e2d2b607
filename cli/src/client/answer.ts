import { messageOf, WskError } from '../errors.js';
import { asMap, asText, type Json, type JsonMap } from '../json/json.js';
import { parseJson } from '../json/parse.js';
import type { HttpResponse } from './transport.js';

/** A blocking invocation that failed or goes on: thrown with what the server answered. */
export class InvocationError extends WskError {
  constructor(
    message: string,
    options: ConstructorParameters<typeof WskError>[1],
    readonly answer: Json,
  ) {
    super(message, options);
  }
}

/** Whether the status is one of success. */
export function succeeded(response: HttpResponse): boolean {
  return response.status >= 200 && response.status <= 299;
}

/** @throws WskError if the body is not JSON. */
export function readJson(response: HttpResponse): Json {
  try {
    return parseJson(response.body);
  } catch (error) {
    throw new WskError(`The server's answer is not JSON: ${messageOf(error)}`);
  }
}

/**
 * The error to throw for a failed request. The exit code is the status minus 256, as a byte. A 502 whose body has no `code`
 * is not the platform's error but an activation that failed.
 */
export function failure(response: HttpResponse): WskError {
  const exitCode = response.status - 256;
  const body = bodyOf(response);
  if (body instanceof Map) {
    const code = body.get('code') ?? null;
    const error = body.get('error') ?? null;
    if (code === null && response.status === 502) {
      const status = asMap(body.get('response')).get('status') ?? null;
      if (status !== null || error !== null) {
        const options = { exitCode, showMessage: false, outcome: 'application error' } as const;
        return new InvocationError(activationError(body), options, body);
      }
    } else if (code !== null && error !== null) {
      return new WskError(`${asText(error)} (code ${asText(code)})`, { exitCode });
    }
  }
  return new WskError(`The connection failed, or timed out. (HTTP status code ${response.status})`, { exitCode });
}

/** Why the activation failed, from its record or from its bare result. */
function activationError(body: JsonMap): string {
  const response = asMap(body.get('response'));
  if (!response.has('status')) return errorText(body.get('error'));
  const result = response.get('result') ?? null;
  const text = result instanceof Map && result.has('error') ? errorText(result.get('error')) : asText(result);
  return `The following application error was received: ${text}`;
}

/** The texts of an error object, `error` first, or the error itself. */
function errorText(error: Json | undefined): string {
  if (!(error instanceof Map)) return asText(error);
  const texts = ['error', ...[...error.keys()].filter((key) => key !== 'error')].map((key) => error.get(key));
  const strings = texts.filter((text) => typeof text === 'string');
  return strings.length > 0 ? strings.join('; ') : asText(error);
}

function bodyOf(response: HttpResponse): Json {
  try {
    return parseJson(response.body);
  } catch (error) {
    if (error instanceof SyntaxError) return null; // a proxy's page, or nothing: the status says what there is to say
    throw error;
  }
}

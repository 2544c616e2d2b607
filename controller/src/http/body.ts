import type { IncomingMessage } from 'node:http';
import { malformedContent, nestedTooDeeply, tooLarge, unsupportedContentType } from '@gpuwhisk/common/errors';
import { isJsonObject, isNestedTooDeeply, maxJsonDepth } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** Thrown when the client went away before its request was complete: there is nobody to answer. */
export class ClientGoneError extends Error {
  override name = 'ClientGoneError';
}

/** OpenWhisk's limit on the length of a URI. */
export const maxUriLength = 8192;

/** What is read and thrown away of a body that is refused, so that the client gets to read why. */
const maxDiscardedBytes = 64 * 1024 * 1024;

/** Reads the rest of a body away; cuts the connection where it is endless. */
function discard(request: IncomingMessage): void {
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxDiscardedBytes) request.destroy();
  });
  request.resume();
}

/** Refuses by its Content-Length a body that is longer than allowed. Throws ApiError (413). */
export function checkDeclaredLength(request: IncomingMessage, maxBytes: number): void {
  const declared = request.headers['content-length'];
  if (declared !== undefined && Number(declared) > maxBytes) {
    discard(request);
    throw tooLarge('Request', Number(declared), maxBytes);
  }
}

/** The whole body. Throws ApiError (413) as soon as it is longer than allowed, ClientGoneError. */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      request.off('data', onData);
      discard(request);
      reject(tooLarge('Request', bytes, maxBytes));
    };
    let complete = false;
    const onGone = (): void => {
      if (!complete) reject(new ClientGoneError('the client left before its request was complete'));
    };
    // Gone before anybody listened: no event will tell.
    if (request.destroyed) onGone();
    request.on('data', onData);
    request.on('end', () => {
      complete = true;
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    });
    request.on('error', onGone);
    request.on('close', onGone);
  });
}

/** Refuses a body that is not declared as JSON; an empty one need not be declared. Throws ApiError (415). */
export function checkContentType(contentType: string | undefined, bodyBytes: number): void {
  if (contentType === undefined) {
    if (bodyBytes > 0) throw unsupportedContentType('application/octet-stream');
    return;
  }
  const semicolon = contentType.indexOf(';');
  const mediaType = semicolon < 0 ? contentType : contentType.slice(0, semicolon);
  if (mediaType.trim().toLowerCase() !== 'application/json') throw unsupportedContentType(contentType);
}

/** A body as JSON. Throws ApiError (400). */
export function parseJson(body: Buffer): JsonValue {
  const text = body.toString('utf8');
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw malformedContent((error as Error).message);
  }
  if (isNestedTooDeeply(text)) throw nestedTooDeeply(maxJsonDepth);
  return value;
}

/** The arguments of an invocation: an object, or {} for an empty body. Throws ApiError (400). */
export function parseArguments(body: Buffer): JsonObject {
  if (body.length === 0) return {};
  const value = parseJson(body);
  if (!isJsonObject(value)) throw malformedContent('JSON object expected');
  return value;
}

// Bodies with an action's code, which may be large.
import type { IncomingMessage } from 'node:http';
import { contentExpected, tooLarge } from '@gpuwhisk/common/errors';
import type { GivenCode } from '@gpuwhisk/common/entities/exec-codec';
import { mostSmallBytes, nextPiece, pieceBytes } from '@gpuwhisk/common/entities/large-code';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { CodeScanner } from './code-scanner.js';
import { checkContentType, checkDeclaredLength, ClientGoneError, discard, parseJson, readPutBody } from './request.js';

/** The JSON of an action. Large code is beside it, and '' in it. */
export interface ActionBody {
  value: JsonValue;
  large?: GivenCode;
}

/** Whether a body may be large. */
export function mayBeLarge({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return length === undefined ? headers['transfer-encoding'] !== undefined : Number(length) > mostSmallBytes;
}

/** Bounds on a body, bytes: as a whole, and without its code. */
export interface BodyBounds {
  maxBytes: number;
  maxRestBytes: number;
}

/** Reads the JSON body of an action's PUT. Throws ApiError (400, 413, 415), ClientGoneError. */
export async function readActionBody(
  request: IncomingMessage,
  { maxBytes, maxRestBytes }: BodyBounds,
  clock: Clock,
): Promise<ActionBody> {
  if (!mayBeLarge(request)) return { value: await readPutBody(request, maxBytes) };
  checkDeclaredLength(request, maxBytes);
  const scanner = new CodeScanner();
  let bytes = 0;
  const refuse = (what: string, length: number, allowed: number): never => {
    discard(request);
    throw tooLarge(what, length, allowed);
  };
  for await (const chunk of chunksOf(request)) {
    bytes += chunk.length;
    if (bytes > maxBytes) refuse('Request', bytes, maxBytes);
    try {
      scanner.push(chunk);
    } catch (error) {
      discard(request);
      throw error;
    }
    if (scanner.restBytes > maxRestBytes) refuse('Request without code', scanner.restBytes, maxRestBytes);
  }
  checkContentType(request.headers['content-type'], bytes);
  if (bytes === 0) throw contentExpected();
  const { rest, codes } = scanner.end();
  const value = parseJson(rest);
  const exec = isJsonObject(value) && isJsonObject(value.exec) ? value.exec : undefined;
  if (exec === undefined) return { value };
  // As in parseJson's value, the last of several codes counts. One that is no text was not taken out.
  const given = [...codes].filter(([field]) => exec[field] === '');
  return withCodes(value, exec, new Map(given), clock);
}

async function* chunksOf(request: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    // A refused request is answered, so the connection must outlive this loop.
    yield* request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  } catch (error) {
    if (request.destroyed) throw new ClientGoneError('the client left before its request was complete');
    throw error;
  }
}

/** Puts small codes into the JSON, and the large one that counts beside it. */
async function withCodes(
  value: JsonValue,
  exec: JsonObject,
  codes: ReadonlyMap<string, Buffer[]>,
  clock: Clock,
): Promise<ActionBody> {
  let large: GivenCode | undefined;
  for (const [field, pieces] of codes) {
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    const isUsed = field === 'code' || exec.code === undefined;
    if (bytes <= mostSmallBytes) exec[field] = Buffer.concat(pieces).toString('utf8');
    else if (isUsed) large = await codeOf(pieces, bytes, clock);
  }
  return large === undefined ? { value } : { value, large };
}

/** Code as it is stored. Takes the pieces, so that none is held twice. */
async function codeOf(pieces: Buffer[], length: number, clock: Clock): Promise<GivenCode> {
  const text = Buffer.allocUnsafeSlow(length);
  let at = 0;
  let copied = 0;
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    at += piece.copy(text, at);
    copied += piece.length;
    if (copied < pieceBytes) continue;
    copied = 0;
    await nextPiece(clock);
  }
  const base64 = await base64In(text, clock);
  return base64 === undefined ? { bytes: text, binary: false } : { bytes: await decoded(base64, clock), binary: true };
}

const whitespace = /\s/;

/** As isBase64Code: the text without whitespace around it if it is base64 of an archive; else undefined. */
async function base64In(text: Buffer, clock: Clock): Promise<Buffer | undefined> {
  let [from, to] = [0, text.length];
  while (from < to && whitespace.test(String.fromCharCode(text[from] as number))) from += 1;
  while (to > from && whitespace.test(String.fromCharCode(text[to - 1] as number))) to -= 1;
  const trimmed = text.subarray(from, to);
  if (trimmed.length === 0 || trimmed.length % 4 !== 0) return undefined;
  const padding = /={0,2}$/.exec(trimmed.toString('latin1', trimmed.length - 2))?.[0].length ?? 0;
  const end = trimmed.length - padding;
  for (let at = 0; at < end; at += pieceBytes) {
    if (/[^A-Za-z0-9+/]/.test(trimmed.toString('latin1', at, Math.min(at + pieceBytes, end)))) return undefined;
    await nextPiece(clock);
  }
  return trimmed;
}

async function decoded(base64: Buffer, clock: Clock): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(Math.ceil(base64.length / 4) * 3);
  let length = 0;
  // A piece divides by 4.
  for (let at = 0; at < base64.length; at += pieceBytes) {
    length += bytes.write(base64.toString('latin1', at, at + pieceBytes), length, 'base64');
    await nextPiece(clock);
  }
  return bytes.subarray(0, length);
}

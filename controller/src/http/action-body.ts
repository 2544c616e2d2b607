// Bodies with an action's code, which may be large.
import type { IncomingMessage } from 'node:http';
import { contentExpected, tooLarge } from '@gpuwhisk/common/errors';
import type { GivenCode } from '@gpuwhisk/common/entities/exec-codec';
import { mostSmallBytes } from '@gpuwhisk/common/entities/large-code';
import type { ByteBound } from '@gpuwhisk/common/entities/limits';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { nextPiece, pieceBytes } from '@gpuwhisk/common/system/pieces';
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

/** Bounds on a body: as a whole, and without its code. */
export interface BodyBounds {
  whole: ByteBound;
  rest: ByteBound;
}

/** Reads the JSON body of an action's PUT. Throws ApiError (400, 413, 415), ClientGoneError. */
export async function readActionBody(
  request: IncomingMessage,
  { whole, rest: besides }: BodyBounds,
  clock: Clock,
): Promise<ActionBody> {
  if (!mayBeLarge(request)) return { value: await readPutBody(request, whole) };
  checkDeclaredLength(request, whole);
  const scanner = new CodeScanner(Number(request.headers['content-length'] ?? 0));
  let bytes = 0;
  const refuse = (what: string, length: number, allowed: ByteBound): never => {
    discard(request);
    throw tooLarge(what, length, allowed.bytes, allowed.setBy);
  };
  for await (const chunk of chunksOf(request)) {
    bytes += chunk.length;
    if (bytes > whole.bytes) refuse('Request', bytes, whole);
    try {
      scanner.push(chunk);
    } catch (error) {
      discard(request);
      throw error;
    }
    if (scanner.restBytes > besides.bytes) refuse('Request without code', scanner.restBytes, besides);
    // Else libuv reads 2 MiB of a fast connection before it looks at another one.
    if (Math.floor(bytes / pieceBytes) > Math.floor((bytes - chunk.length) / pieceBytes)) await nextPiece(clock);
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
  codes: ReadonlyMap<string, Buffer>,
  clock: Clock,
): Promise<ActionBody> {
  let large: GivenCode | undefined;
  for (const [field, text] of codes) {
    const isUsed = field === 'code' || exec.code === undefined;
    if (text.length <= mostSmallBytes) exec[field] = text.toString('utf8');
    else if (isUsed) large = await codeOf(text, clock);
  }
  return large === undefined ? { value } : { value, large };
}

/** Code as it is stored. */
async function codeOf(text: Buffer, clock: Clock): Promise<GivenCode> {
  const archive = await archiveIn(text, clock);
  return archive === undefined ? { bytes: text, binary: false } : { bytes: archive, binary: true };
}

const whitespace = /\s/;
/** What base64 begins with: most code has other characters in its first line. */
const startOfBase64 = /^[\w+/-]*=*$/;
const startLength = 1024;
/** Node.js decodes them as well, for the other alphabet of base64. */
const otherAlphabet = ['-', '_'];

/** As isBase64Code: what the text has if it is base64 of an archive, with whitespace around it or not; else undefined. */
async function archiveIn(text: Buffer, clock: Clock): Promise<Buffer | undefined> {
  let [from, to] = [0, text.length];
  while (from < to && whitespace.test(String.fromCharCode(text[from] as number))) from += 1;
  while (to > from && whitespace.test(String.fromCharCode(text[to - 1] as number))) to -= 1;
  const base64 = text.subarray(from, to);
  if (base64.length === 0 || base64.length % 4 !== 0) return undefined;
  if (!startOfBase64.test(base64.toString('latin1', 0, startLength))) return undefined;
  const padding = /={0,2}$/.exec(base64.toString('latin1', base64.length - 2))?.[0].length ?? 0;
  const bytes = Buffer.allocUnsafeSlow((base64.length / 4) * 3 - padding);
  // A piece divides by 4. What is no base64 is left out when it is decoded, so that bytes are missing.
  for (let at = 0, length = 0; at < base64.length; at += pieceBytes) {
    const piece = base64.toString('latin1', at, at + pieceBytes);
    length += bytes.write(piece, length, 'base64');
    const expected = Math.min(bytes.length, ((at + piece.length) / 4) * 3);
    if (length !== expected || otherAlphabet.some((character) => piece.includes(character))) return undefined;
    await nextPiece(clock);
  }
  return bytes;
}

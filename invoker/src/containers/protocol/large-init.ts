// Init requests with large code, which are made and written in pieces.
import { jsonWithCode, sha256Of } from '@gpuwhisk/common/entities/large-code';
import type { LargeCode } from '@gpuwhisk/common/entities/large-code';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { InitRequest } from '../container-factory.js';
import { differenceOf, partPieces, partsWith } from './frames.js';

/** A payload in pieces. */
export interface LargePayload {
  pieces: readonly Uint8Array[];
  length: number;
  /** To be called when all pieces have been written, or none will be. */
  written(): void;
}

/** The init request with its large code as a payload: JSON, or parts after the check of the digest. A string says why there is none. */
export async function largePayload(
  clock: Clock,
  request: InitRequest,
  large: LargeCode,
  inParts: boolean,
): Promise<LargePayload | string> {
  const { digest } = request;
  if (!inParts) return largeJson(clock, { ...request }, [], large, request.binary);
  const wrong = digest === undefined ? undefined : differenceOf(await sha256Of(clock, large.bytes), digest);
  return wrong ?? payloadOf(partPieces(partsWith(request, large.bytes)), large);
}

/** The JSON of `request`, which lies below `path` in it, with the large code as its `code`. */
export async function largeJson(
  clock: Clock,
  request: object,
  path: readonly string[],
  large: LargeCode,
  binary: boolean,
): Promise<LargePayload> {
  const whole = path.reduceRight<object>((inner, name) => ({ [name]: inner }), { ...request, code: '' });
  const pieces: Buffer[] = [];
  const code = { code: large.bytes, binary };
  for await (const piece of jsonWithCode(clock, whole as JsonObject, [...path, 'code'], code)) pieces.push(piece);
  return payloadOf(pieces, large);
}

function payloadOf(pieces: readonly Uint8Array[], large: LargeCode): LargePayload {
  return { pieces, length: pieces.reduce((sum, { length }) => sum + length, 0), written: () => large.passed() };
}

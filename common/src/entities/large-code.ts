// Code of more than 1 MiB: it is hashed, encoded and passed on in pieces, between which other work of the thread is done.
import { createHash } from 'node:crypto';
import type { JsonObject, JsonValue } from '../json.js';
import { isJsonObject } from '../json.js';
import { isPlainJsonText } from '../json-bytes.js';
import type { Clock } from '../system/clock.js';
import { nextPiece, pieceBytes } from '../system/pieces.js';

/** Code of more bytes is large. */
export const mostSmallBytes = 1024 * 1024;

/** Large code on its way to a runtime. */
export class LargeCode {
  private held: Uint8Array | undefined;
  private readonly passOn: () => void;

  /** `onPassed` is called once, when the bytes are no longer held. */
  constructor(bytes: Uint8Array, onPassed: () => void = () => undefined) {
    this.held = bytes;
    this.passOn = onPassed;
  }

  /** Source text as UTF-8, or an archive. Throws an Error once it has been passed on. */
  get bytes(): Uint8Array {
    if (this.held === undefined) throw new Error('the code has been passed on already');
    return this.held;
  }

  /** Gives up the bytes, which the runtime has, or no longer needs. May be called again. */
  passed(): void {
    if (this.held === undefined) return;
    this.held = undefined;
    this.passOn();
  }
}

/** The SHA-256 of bytes, hexadecimal. */
export async function sha256Of(clock: Clock, bytes: Uint8Array): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (at > 0) await nextPiece(clock);
    hash.update(bytes.subarray(at, at + pieceBytes));
  }
  return hash.digest('hex');
}

/** Code as what stands between the quotes of a JSON string: escaped text, or base64 if `binary`. */
export async function* jsonTextOf(clock: Clock, code: Uint8Array, binary: boolean): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(code.buffer, code.byteOffset, code.byteLength);
  for (let at = 0; at < bytes.length;) {
    const end = binary ? at + pieceBytes : characterEnd(bytes, at + pieceBytes);
    const piece = bytes.subarray(at, end);
    yield binary ? Buffer.from(piece.toString('base64'), 'latin1') : jsonOf(piece);
    at = end;
    await nextPiece(clock);
  }
}

const jsonOf = (piece: Buffer): Buffer =>
  isPlainJsonText(piece) ? piece : Buffer.from(JSON.stringify(piece.toString('utf8')).slice(1, -1));

/** The first end of a character of UTF-8 at `at` or after it. */
function characterEnd(bytes: Buffer, at: number): number {
  let end = Math.min(at, bytes.length);
  while (end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end += 1;
  return end;
}

/** The JSON of `value` before and after the text at `path`, which it has as ''. Throws an Error if it has not. */
export function jsonAround(value: JsonValue, [name, ...rest]: readonly string[]): [before: string, after: string] {
  if (name === undefined) {
    if (value !== '') throw new Error('the text to be replaced is not empty');
    return ['"', '"'];
  }
  const members = isJsonObject(value) ? Object.entries(value) : [];
  const at = members.findIndex(([key]) => key === name);
  const member = members[at];
  if (member === undefined) throw new Error(`the JSON has no '${name}'`);
  const [before, after] = jsonAround(member[1], rest);
  const inside = (some: [string, JsonValue][]): string => JSON.stringify(Object.fromEntries(some)).slice(1, -1);
  const [first, last] = [inside(members.slice(0, at)), inside(members.slice(at + 1))];
  return [
    `{${first}${first === '' ? '' : ','}${JSON.stringify(name)}:${before}`,
    `${after}${last === '' ? '' : ','}${last}}`,
  ];
}

/** The JSON of `value` with code in place of the '' at `path`, in pieces. */
export async function* jsonWithCode(
  clock: Clock,
  value: JsonObject,
  path: readonly string[],
  { code, binary }: { code: Uint8Array; binary: boolean },
): AsyncGenerator<Buffer> {
  const [before, after] = jsonAround(value, path);
  yield Buffer.from(before);
  yield* jsonTextOf(clock, code, binary);
  yield Buffer.from(after);
}

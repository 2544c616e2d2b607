// The wire format of the framed protocol: frames, and payloads that are lists of parts for runtimes that read no JSON.
import { createHash } from 'node:crypto';
import type { InitRequest, RunRequest } from '../container-factory.js';

/** Types of frames. */
export const frameTypes = {
  hello: 1,
  init: 2,
  run: 3,
  result: 4,
  error: 5,
  log: 6,
  cancel: 7,
  bye: 8,
  unload: 9,
  check: 10,
  results: 11,
  stop: 12,
  progress: 13,
  code: 14,
  size: 15,
  launcher: 240,
} as const;
/** A hello's payload, parsed and not checked. */
export type HelloPayload =
  | Partial<
      Record<
        'version' | 'pid' | 'cuda' | 'parts' | 'directParts' | 'codeFrames' | 'batch' | 'unload' | 'endsLate' | 'unfit',
        unknown
      >
    >
  | null
  | undefined;

/** Bytes before a frame's payload: u32 LE length, u8 type, u32 LE id. */
const headerBytes = 9;
/** Largest payload, bytes. */
export const maxFrameBytes = 64 * 1024 * 1024;

/**
 * Receives frames. The buffer of a payload that came in one chunk is reused: a handler must copy the bytes of it that it keeps.
 * One of more than a MiB has its own.
 */
export interface FrameHandler {
  /** The number of payload bytes that the handler wants; further bytes are counted and dropped. */
  wanted(type: number, id: number, lengthBytes: number): number;
  /** A frame; `payload` holds the wanted bytes of its `lengthBytes`. */
  frame(type: number, id: number, payload: Buffer, lengthBytes: number): void;
  /** A frame's length exceeds the maximum; later frames cannot be decoded. */
  tooLong(lengthBytes: number): void;
}

/** Splits a stream of chunks into frames, without copying those that lie within one chunk. */
export class FrameReader {
  private readonly header = Buffer.alloc(headerBytes);
  private headerFilled = 0;
  private type = 0;
  private id = 0;
  private length = 0;
  private received = 0;
  private keep = 0;
  private payload: Buffer | undefined;
  private broken = false;

  constructor(private readonly handler: FrameHandler) {}

  /** Whether part of a frame has come. */
  get isWithinFrame(): boolean {
    return this.headerFilled > 0 || this.payload !== undefined;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.broken) at = this.payload ? this.continueFrame(chunk, at) : this.start(chunk, at);
  }

  private start(chunk: Buffer, at: number): number {
    if (this.headerFilled === 0 && chunk.length - at >= headerBytes)
      return this.open(chunk, at, chunk, at + headerBytes);
    const taken = Math.min(headerBytes - this.headerFilled, chunk.length - at);
    chunk.copy(this.header, this.headerFilled, at, at + taken);
    this.headerFilled += taken;
    if (this.headerFilled < headerBytes) return at + taken;
    this.headerFilled = 0;
    return this.open(this.header, 0, chunk, at + taken);
  }

  private open(header: Buffer, headerAt: number, chunk: Buffer, at: number): number {
    const length = header.readUInt32LE(headerAt);
    const type = header.readUInt8(headerAt + 4);
    const id = header.readUInt32LE(headerAt + 5);
    if (length > maxFrameBytes) {
      this.broken = true;
      this.handler.tooLong(length);
      return chunk.length;
    }
    const keep = Math.min(length, this.handler.wanted(type, id, length));
    if (chunk.length - at >= length) {
      this.handler.frame(type, id, chunk.subarray(at, at + keep), length);
      return at + length;
    }
    this.type = type;
    this.id = id;
    this.length = length;
    this.keep = keep;
    this.received = 0;
    this.payload = Buffer.allocUnsafe(keep);
    return this.continueFrame(chunk, at);
  }

  private continueFrame(chunk: Buffer, at: number): number {
    const payload = this.payload;
    if (!payload) return at;
    const taken = Math.min(this.length - this.received, chunk.length - at);
    if (this.received < this.keep) chunk.copy(payload, this.received, at, at + taken);
    this.received += taken;
    if (this.received === this.length) {
      this.payload = undefined;
      this.handler.frame(this.type, this.id, payload, this.length);
    }
    return at + taken;
  }
}

/** The bytes before a payload of `length` bytes, in a buffer with `more` bytes behind them. */
export function frameHeader(type: number, id: number, length: number, more = 0): Buffer {
  const header = Buffer.allocUnsafe(headerBytes + more);
  header.writeUInt32LE(length, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32LE(id, 5);
  return header;
}

/** A frame, ready to be written in one piece. */
export function encodeFrame(type: number, id: number, payload: string | Buffer): Buffer {
  const length = Buffer.byteLength(payload);
  const frame = frameHeader(type, id, length, length);
  if (typeof payload === 'string') frame.write(payload, headerBytes, 'utf8');
  else payload.copy(frame, headerBytes);
  return frame;
}

/** A name and its bytes, in a payload for a runtime that reads no JSON. Names may repeat. */
type Part = readonly [name: string, bytes: string | Uint8Array];

const lengthBytes = 4;
const noCode = 'Missing main/no code to execute.'; // OpenWhisk's text.
const base64 = /^[A-Za-z0-9+/=\r\n]*$/;

/** Encodes parts as a payload: for each part its name and its bytes, each preceded by its length (u32, little-endian). */
export function encodeParts(parts: readonly Part[]): Buffer {
  return Buffer.concat(partPieces(parts));
}

/** The payload of encodeParts in pieces, the bytes of parts uncopied. */
export function partPieces(parts: readonly Part[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (const piece of parts.flat()) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    const length = Buffer.allocUnsafe(lengthBytes);
    length.writeUInt32LE(bytes.length);
    pieces.push(length, bytes);
  }
  return pieces;
}

/** The parts of a payload; undefined if the payload is no list of parts. */
export function decodeParts(payload: Buffer): [name: string, bytes: Buffer][] | undefined {
  const pieces: Buffer[] = [];
  for (let at = 0; at < payload.length;) {
    if (payload.length - at < lengthBytes) return undefined;
    const start = at + lengthBytes;
    at = start + payload.readUInt32LE(at);
    if (at > payload.length) return undefined;
    pieces.push(payload.subarray(start, at));
  }
  if (pieces.length % 2 !== 0) return undefined;
  return pieces.flatMap((name, index): [string, Buffer][] =>
    index % 2 === 0 ? [[name.toString(), pieces[index + 1] as Buffer]] : [],
  );
}

/** The parts of an init request, or a string with the reason if the code cannot be loaded. */
export function initParts(request: InitRequest): Part[] | string {
  const { code = '', binary, digest } = request;
  if (binary && !base64.test(code)) return 'The code is not valid base64.';
  const bytes = Buffer.from(code, binary ? 'base64' : 'utf8');
  if (bytes.length === 0) return noCode;
  return (digest === undefined ? undefined : digestError(bytes, digest)) ?? partsWith(request, bytes);
}

/** The parts of an init request whose code has been checked. */
export function partsWith({ main, entry, env }: InitRequest, bytes: Uint8Array): Part[] {
  const variables = Object.entries(env);
  return [
    ['code', bytes],
    ['main', main],
    ...(entry === undefined ? [] : [['entry', entry] as const]),
    ['owner', env.__OW_NAMESPACE ?? ''],
    ['deadline', env.__OW_DEADLINE ?? ''],
    ...variables.map(([name, value]): Part => ['env', `${name}=${value}`]),
  ];
}

/** The parts of a run request. */
export function runParts({ value, batch, ...variables }: RunRequest): Part[] {
  const values = batch !== undefined && Array.isArray(value) ? value : [value];
  return [
    ...(batch === undefined ? [] : [['batch', batch] as const]),
    ['deadline', variables.deadline],
    ...Object.entries(variables).map(([name, text]): Part => ['env', `__OW_${name.toUpperCase()}=${text}`]),
    ...values.map((one): Part => ['value', JSON.stringify(one)]),
  ];
}

/**
 * The error text for code that differs from the registered code; undefined if the SHA-256 is `digest` (lower-case
 * hexadecimal). Callers check right before they pass the code to the process that runs it.
 */
export function digestError(code: Uint8Array, digest: string): string | undefined {
  return differenceOf(createHash('sha256').update(code).digest('hex'), digest);
}

/** As digestError, for code whose SHA-256 `is` known. */
export function differenceOf(is: string, digest: string): string | undefined {
  return is === digest ? undefined : `The code's SHA-256 is ${is}, not ${digest} as registered.`;
}

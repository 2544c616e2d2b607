import { digestError } from '../code-digest.js';
import type { InitRequest, RunRequest } from '../container-factory.js';

/** A name and its bytes, in a payload for a runtime that reads no JSON. A name may come several times. */
export type Part = readonly [name: string, bytes: string | Uint8Array];

const lengthBytes = 4;
const noCode = 'Missing main/no code to execute.'; // OpenWhisk's text.
const base64 = /^[A-Za-z0-9+/=\r\n]*$/;

/** A payload: of each part the name, then the bytes, each after its length (u32, little-endian). */
export function encodeParts(parts: readonly Part[]): Buffer {
  const pieces: Uint8Array[] = [];
  for (const piece of parts.flat()) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    const length = Buffer.allocUnsafe(lengthBytes);
    length.writeUInt32LE(bytes.length);
    pieces.push(length, bytes);
  }
  return Buffer.concat(pieces);
}

/** The parts of a payload; undefined if it is no list of parts. */
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

/** What an init asks for; a text says why its code cannot be loaded. */
export function initParts(request: InitRequest): Part[] | string {
  const { main, code = '', binary, entry, digest, env } = request;
  if (binary && !base64.test(code)) return 'The code is not valid base64.';
  const bytes = Buffer.from(code, binary ? 'base64' : 'utf8');
  if (bytes.length === 0) return noCode;
  const wrong = digest === undefined ? undefined : digestError(bytes, digest);
  if (wrong !== undefined) return wrong;
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

/** What a run asks for. */
export function runParts({ value, batch, ...variables }: RunRequest): Part[] {
  const values = batch !== undefined && Array.isArray(value) ? value : [value];
  return [
    ...(batch === undefined ? [] : [['batch', batch] as const]),
    ['deadline', variables.deadline],
    ...Object.entries(variables).map(([name, text]): Part => ['env', `__OW_${name.toUpperCase()}=${text}`]),
    ...values.map((one): Part => ['value', JSON.stringify(one)]),
  ];
}

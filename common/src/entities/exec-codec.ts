// An action's code: its `exec` in the API and in documents, and the attachment that holds the bytes.
import { createHash } from 'node:crypto';
import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import { kindsOf, resolveKind } from '../runtimes.js';
import type { RuntimeManifest } from '../runtimes.js';
import type { BlackboxExec, CodeAttachment, Exec, SequenceExec } from './action.js';
import { sha256Of } from './large-code.js';
import { MalformedError, asObject, asString } from './malformed.js';
import { canonicalFullName } from './names.js';
import type { Clock } from '../system/clock.js';
import type { Random } from '../system/random.js';
import { newUuid } from '../ids.js';

/** A container image reference, as Docker's grammar has it: [domain/]path[:tag][@digest]. */
const imagePattern = new RegExp(
  '^(?:(?:[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)+(?::\\d+)?|[A-Za-z0-9-]+:\\d+)/)?' +
    '[a-z0-9]+(?:(?:__|[._]|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:__|[._]|-+)[a-z0-9]+)*)*' +
    '(?::\\w[\\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[+._-][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$',
);
const maxImageLength = 512;

/**
 * The `exec` of a PUT body, with the large code that was taken out of it: the kind resolved to one of the manifest, `binary`
 * computed. Throws MalformedError with
 * OpenWhisk's texts.
 */
export function readExecInput(value: JsonValue, manifest: RuntimeManifest, large?: GivenCode): Exec {
  const exec = asObject(value);
  const kind = asString(exec.kind, "'kind' must be a string defined in 'exec'").trim().toLowerCase();
  if (kind === 'sequence') return readSequence(exec);
  if (kind === 'blackbox') return readBlackboxInput(exec, large);
  const entry = resolveKind(manifest, kind);
  if (entry === undefined) {
    const valid = [...kindsOf(manifest), 'sequence', 'blackbox'].map((known) => `'${known}'`).join(', ');
    throw new MalformedError(
      `The specified runtime '${kind}' is not supported by this platform. Valid values are: ${valid}.`,
    );
  }
  const expected = entry.attached === undefined ? 'a string' : 'a string or attachment object';
  const code = asString(exec.code ?? exec.jar, `'code' must be ${expected} defined in 'exec' for '${kind}' actions`);
  const main = readMain(exec.main, kind);
  if (main === undefined && entry.requireMain) {
    throw new MalformedError(`'main' must be a string defined in 'exec' for '${kind}' actions`);
  }
  const given =
    large === undefined ? { code, binary: isBase64Code(code) } : { code: large.bytes, binary: large.binary };
  return { kind: entry.kind, ...given, ...(main !== undefined && { main }) };
}

function readMain(value: JsonValue | undefined, kind: string): string | undefined {
  if (value === undefined) return undefined;
  return asString(value, `if defined, 'main' be a string in 'exec' for '${kind}' actions`);
}

function readSequence(exec: JsonObject): SequenceExec {
  const { components } = exec;
  if (components === undefined) throw new MalformedError("'components' must be defined for sequence kind");
  if (!Array.isArray(components)) throw new MalformedError("'components' must be an array");
  return { kind: 'sequence', components: components.map(readComponent) };
}

/** A component is a name, or `{path, name}` as older documents have it. */
function readComponent(value: JsonValue): string {
  const text =
    isJsonObject(value) && typeof value.path === 'string' && typeof value.name === 'string'
      ? `${value.path}/${value.name}`
      : asString(value, 'fully qualified name malformed');
  try {
    return canonicalFullName(text);
  } catch (error) {
    throw new MalformedError((error as Error).message);
  }
}

function readBlackboxInput(exec: JsonObject, large: GivenCode | undefined): BlackboxExec {
  const image = asString(exec.image, "'image' must be a string defined in 'exec' for 'blackbox' actions");
  if (image.length > maxImageLength || !imagePattern.test(image))
    throw new MalformedError('could not parse image name');
  const main = readMain(exec.main, 'blackbox');
  const read: BlackboxExec = { kind: 'blackbox', image, binary: false, ...(main !== undefined && { main }) };
  if (exec.code === undefined) return read;
  if (large !== undefined) return { ...read, code: large.bytes, binary: large.binary };
  const code = asString(
    exec.code,
    "'code' must be a string or attachment object defined in 'exec' for 'blackbox' actions",
  );
  return code.trim() === '' ? read : { ...read, code, binary: isBase64Code(code) };
}

/** The `exec` of a stored action, of this or an older version. Throws MalformedError. */
export function readStoredExec(value: JsonValue | undefined): Exec {
  const exec = asObject(value);
  const kind = asString(exec.kind, "'kind' must be a string defined in 'exec'");
  if (kind === 'sequence') return readSequence(exec);
  // Java actions once kept their code in `jar`.
  const stored = exec.code ?? exec.jar;
  const code = stored === undefined ? undefined : readStoredCode(stored);
  const binary = typeof exec.binary === 'boolean' ? exec.binary : typeof code === 'string' && isBase64Code(code);
  const main = readMain(exec.main, kind);
  const rest = { binary, ...(main !== undefined && { main }) };
  if (kind === 'blackbox') {
    const image = asString(exec.image, "'image' must be a string defined in 'exec' for 'blackbox' actions");
    return { kind, image, ...(code !== undefined && { code }), ...rest };
  }
  if (code === undefined) {
    throw new MalformedError(`'code' must be a string or attachment object defined in 'exec' for '${kind}' actions`);
  }
  return { kind, code, ...rest };
}

function readStoredCode(value: JsonValue): string | CodeAttachment {
  if (typeof value === 'string') return value;
  const { attachmentName, attachmentType, length, digest } = asObject(value);
  return {
    attachmentName: asString(attachmentName, 'Could not deserialize as attachment record'),
    attachmentType: asString(attachmentType, 'Could not deserialize content-type'),
    ...(typeof length === 'number' && { length }),
    ...(typeof digest === 'string' && { digest }),
  };
}

/** `exec` as JSON, for documents and the API alike; large code as ''. */
export function writeExec(exec: Exec): JsonObject {
  if (isSequence(exec)) return { kind: exec.kind, components: exec.components };
  const written: JsonObject = { kind: exec.kind };
  if ('image' in exec) written.image = exec.image;
  if (exec.code !== undefined)
    written.code = isReference(exec.code) ? { ...exec.code } : typeof exec.code === 'string' ? exec.code : '';
  written.binary = exec.binary;
  if (exec.main !== undefined) written.main = exec.main;
  return written;
}

/** Bytes of the base64 of so many bytes. */
export const base64Bytes = (bytes: number): number => Math.ceil(bytes / 3) * 4;

/** Bytes that a text of base64 stands for. */
function decodedBytes(text: string): number {
  const { length } = text.trim();
  return (length / 4) * 3 - (/={0,2}$/.exec(text.trimEnd())?.[0].length ?? 0);
}

/** The size that the limit on `exec` applies to, in bytes: an archive counts itself, not its base64, and attached code nothing. */
export function execBytes(exec: Exec): number {
  if (isSequence(exec)) return exec.components.reduce((sum, component) => sum + Buffer.byteLength(component), 0);
  const { code: given, binary } = exec;
  const code =
    typeof given === 'string'
      ? binary
        ? decodedBytes(given)
        : Buffer.byteLength(given)
      : given instanceof Uint8Array
        ? given.length
        : 0;
  const image = 'image' in exec ? Buffer.byteLength(exec.image) : 0;
  return code + image + Buffer.byteLength(exec.main ?? '');
}

/** Whether code is a reference to where it lies. */
export function isReference(code: string | Uint8Array | CodeAttachment | undefined): code is CodeAttachment {
  return typeof code === 'object' && !(code instanceof Uint8Array);
}

/** Whether `exec` is a sequence's. */
export function isSequence(exec: Exec): exec is SequenceExec {
  return exec.kind === 'sequence';
}

/** Code of fewer bytes lies in the document itself, within the attachment's name. */
const maxInlineBytes = 16 * 1024;

const memoryScheme = 'mem:';
const beside = 'couch:';

/** Code as it is stored: the reference in the document, and what goes beside it. */
export interface StoredCode {
  reference: CodeAttachment;
  /** The attachment to store with the document; undefined where the name holds the bytes. */
  attachment?: { name: string; contentType: string; bytes: Uint8Array };
}

/** Large code of a PUT body: source text as UTF-8, or an archive if `binary`. */
export interface GivenCode {
  bytes: Uint8Array;
  binary: boolean;
}

/** Whether OpenWhisk takes code for base64 of an archive: a length that is a multiple of 4, only base64 inside. */
export function isBase64Code(code: string): boolean {
  const trimmed = code.trim();
  if (trimmed.length === 0 || trimmed.length % 4 !== 0) return false;
  const padding = trimmed.endsWith('==') ? 2 : trimmed.endsWith('=') ? 1 : 0;
  return !/[^A-Za-z0-9+/]/.test(trimmed.slice(0, trimmed.length - padding));
}

/** Large code of a PUT body: source text as UTF-8, or an archive if `binary`. */
export interface GivenCode {
  bytes: Uint8Array;
  binary: boolean;
}

/** What is stored for `code` (base64 when `binary`). */
export function storeCode(code: string, binary: boolean, random: Random): StoredCode {
  const bytes = Buffer.from(code, binary ? 'base64' : 'utf8');
  const reference = referenceTo(bytes, binary, createHash('sha256').update(bytes).digest('hex'));
  if (bytes.length < maxInlineBytes) {
    // With padding, as Java's URL encoder writes it.
    const name = bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
    return { reference: { attachmentName: memoryScheme + name, ...reference } };
  }
  return attached(bytes, reference, random);
}

/** As storeCode, for large code. */
export async function storeLargeCode({ bytes, binary }: GivenCode, random: Random, clock: Clock): Promise<StoredCode> {
  return attached(bytes, referenceTo(bytes, binary, await sha256Of(clock, bytes)), random);
}

type Reference = Omit<CodeAttachment, 'attachmentName'>;

function referenceTo({ length }: Uint8Array, binary: boolean, sha256: string): Reference {
  const attachmentType = binary ? 'application/octet-stream' : 'text/plain; charset=UTF-8';
  return { attachmentType, length, digest: `sha256-${sha256}` };
}

function attached(bytes: Uint8Array, reference: Reference, random: Random): StoredCode {
  const name = newUuid(random);
  return {
    reference: { attachmentName: beside + name, ...reference },
    attachment: { name, contentType: reference.attachmentType, bytes },
  };
}

/** Where the bytes of a reference are: in it, or in the attachment of that name. */
export function locateCode(reference: CodeAttachment): { bytes: Buffer } | { attachmentName: string } {
  const { attachmentName } = reference;
  if (attachmentName.startsWith(memoryScheme)) {
    return { bytes: Buffer.from(attachmentName.slice(memoryScheme.length), 'base64url') };
  }
  // Names without a scheme (`codefile`, `jarfile`) are those of old documents.
  return { attachmentName: attachmentName.startsWith(beside) ? attachmentName.slice(beside.length) : attachmentName };
}

/** Stored bytes as the API and runtimes take code. */
export function codeText(bytes: Uint8Array, binary: boolean): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(binary ? 'base64' : 'utf8');
}

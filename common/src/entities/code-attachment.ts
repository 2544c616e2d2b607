import { createHash } from 'node:crypto';
import type { Random } from '../system/random.js';
import { newUuid } from '../ids.js';
import type { CodeAttachment } from './action.js';

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

/** Whether OpenWhisk takes code for base64 of an archive: a length that is a multiple of 4, only base64 inside. */
export function isBase64Code(code: string): boolean {
  const trimmed = code.trim();
  if (trimmed.length === 0 || trimmed.length % 4 !== 0) return false;
  const padding = trimmed.endsWith('==') ? 2 : trimmed.endsWith('=') ? 1 : 0;
  return !/[^A-Za-z0-9+/]/.test(trimmed.slice(0, trimmed.length - padding));
}

/** What is stored for `code` (base64 when `binary`). */
export function storeCode(code: string, binary: boolean, random: Random): StoredCode {
  const bytes = Buffer.from(code, binary ? 'base64' : 'utf8');
  const attachmentType = binary ? 'application/octet-stream' : 'text/plain; charset=UTF-8';
  const reference = {
    attachmentType,
    length: bytes.length,
    digest: `sha256-${createHash('sha256').update(bytes).digest('hex')}`,
  };
  if (bytes.length < maxInlineBytes) {
    // With padding, as Java's URL encoder writes it.
    const name = bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
    return { reference: { attachmentName: memoryScheme + name, ...reference } };
  }
  const name = newUuid(random);
  return {
    reference: { attachmentName: beside + name, ...reference },
    attachment: { name, contentType: attachmentType, bytes },
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

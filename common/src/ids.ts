import type { Random } from './system/random.js';

const alphanumerics = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 'latin1');

/** The digits of a time, which many ids in turn share. */
let prefix = '';
let prefixMs = -1;

/**
 * A new activation id: 32 lower-case hex digits. The first twelve are the time (epoch ms), so that records
 * made together lie together on disk; the rest is random.
 */
export function newActivationId(nowMs: number, random: Random): string {
  if (nowMs !== prefixMs) {
    prefixMs = nowMs;
    prefix = nowMs.toString(16).padStart(12, '0');
  }
  return prefix + random.hex(10);
}

/** Whether `text` can be an activation id. */
export function isActivationId(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text);
}

/** A new transaction id: 32 alphanumerics. Hex digits do: they are written quickest, and each request has one. */
export function newTransactionId(random: Random): string {
  return random.hex(16);
}

/** A new key of an identity: 64 alphanumerics. */
export function newKey(random: Random): string {
  const bytes = random.bytes(64);
  for (let i = 0; i < 64; i++) bytes[i] = alphanumerics[(bytes[i] ?? 0) % 62] ?? 0;
  return Buffer.from(bytes.buffer, bytes.byteOffset, 64).toString('latin1');
}

/** A new random UUID (version 4). */
export function newUuid(random: Random): string {
  const bytes = Buffer.from(random.bytes(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

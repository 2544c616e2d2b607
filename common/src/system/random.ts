import { randomFillSync } from 'node:crypto';

/** A source of randomness. */
export interface Random {
  /** `count` random bytes. */
  bytes(count: number): Uint8Array;
  /** `count` random bytes as lower-case hex digits. */
  hex(count: number): string;
  /** An integer, uniform over 0 ≤ x < 2^32. */
  uint32(): number;
}

/** A fraction, uniform over 0 ≤ x < 1. */
export function randomFraction(random: Random): number {
  return random.uint32() / 0x1_0000_0000;
}

/** A copy in random order. */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const order = [...items];
  for (let i = order.length - 1; i > 0; i -= 1) {
    const j = Math.floor(randomFraction(random) * (i + 1));
    [order[i], order[j]] = [order[j] as T, order[i] as T];
  }
  return order;
}

const pool = Buffer.alloc(4096);
let used = pool.length;

function take(count: number): number {
  if (used + count > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += count;
  return used - count;
}

/** Cryptographically strong randomness, drawn from the system in blocks. */
export const systemRandom: Random = {
  bytes(count) {
    if (count > pool.length) return randomFillSync(new Uint8Array(count));
    const start = take(count);
    return Uint8Array.prototype.slice.call(pool, start, start + count);
  },
  hex(count) {
    if (count > pool.length) return hexOf(this.bytes(count));
    const start = take(count);
    return pool.toString('hex', start, start + count);
  },
  uint32: () => pool.readUInt32LE(take(4)),
};

/** A seeded generator (SplitMix32): the same seed gives the same sequence everywhere. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
  const bytes = (count: number): Uint8Array => {
    const out = new Uint8Array(count);
    for (let i = 0; i < count; i++) out[i] = next() & 0xff;
    return out;
  };
  return { uint32: next, bytes, hex: (count) => hexOf(bytes(count)) };
}

function hexOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('hex');
}

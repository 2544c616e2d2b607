/** Uniform integers from 0 to `count` − 1, the same for the same seed (Marsaglia's xorshift, 32 bits). */
export function seededChoice(seed: number, count: number): () => number {
  // A state of zero would stay zero.
  let state = (seed * 0x9e3779b1) | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return Math.floor(((state >>> 0) / 2 ** 32) * count);
  };
}

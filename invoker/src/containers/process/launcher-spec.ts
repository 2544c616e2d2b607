/** Words of a launcher's spec (native/sandbox/spec.c lists them). */
export type Words = string[];

/** A message to the launcher: u32 little-endian length, then each word with a NUL after it. Throws on a NUL in a word. */
export function specMessage(words: Words): Buffer {
  for (const word of words) {
    if (word.includes('\0')) throw new Error(`A sandbox cannot be given the word ${JSON.stringify(word)}.`);
  }
  const body = Buffer.from(words.join('\0') + '\0');
  const message = Buffer.allocUnsafe(4 + body.length);
  message.writeUInt32LE(body.length, 0);
  body.copy(message, 4);
  return message;
}

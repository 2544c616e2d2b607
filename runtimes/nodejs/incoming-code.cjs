'use strict';
// Large code, whose bytes come in frames of their own behind the init.

/**
 * The code of an init that says `codeBytes`. It is kept once, in a buffer of its size: as text of JSON in base64 it would be
 * held several times over, beside what its archive extracts to.
 */
class IncomingCode {
  #id;
  #message;
  #bytes;
  #filled = 0;

  constructor(id, message) {
    this.#id = id;
    this.#message = message;
    this.#bytes = Buffer.allocUnsafeSlow(message.codeBytes);
  }

  /** Takes the next piece. Returns the init with its code once that is whole, else undefined; throws for one that is no part of it. */
  take(id, piece) {
    const end = this.#filled + piece.length;
    if (id !== this.#id || end > this.#bytes.length)
      throw new Error(`a piece of code that init ${id} has not announced`);
    this.#bytes.set(piece, this.#filled);
    this.#filled = end;
    if (end < this.#bytes.length) return undefined;
    const { binary } = this.#message;
    return { ...this.#message, codeBytes: undefined, code: binary ? this.#bytes : this.#bytes.toString('utf8') };
  }
}

module.exports = { IncomingCode };

// Takes the code out of the JSON of an action while it comes, so that it is never one long text.
import { malformedContent } from '@gpuwhisk/common/errors';
import { hasControlCharacter } from '@gpuwhisk/common/json-bytes';

const [quote, backslash, colon, comma] = [0x22, 0x5c, 0x3a, 0x2c];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];
const letterU = 0x75;
/** Length of two escapes that are one character. */
const pairBytes = 12;
/** Longer names are not those that are looked for. */
const mostNameBytes = 64;
const none = Buffer.alloc(0);

type Mode = 'structure' | 'name' | 'text' | 'code';

/** Names of the fields in `exec` that have code; Java actions once had it in `jar`. */
const codeFields = ['code', 'jar'];

/** What a body has: the JSON with '' for each code, and the code by its field. */
export interface ScannedBody {
  rest: Buffer;
  /** Code as UTF-8. */
  codes: ReadonlyMap<string, Buffer>;
}

/**
 * Splits a JSON object that comes in chunks into the texts of `exec.code` and `exec.jar`, and the rest. It follows the
 * structure only as far as it must: the rest, when parsed, shows whether the JSON is valid.
 */
export class CodeScanner {
  private readonly rest: Buffer[] = [];
  private restLength = 0;
  private readonly codes = new Map<string, Buffer>();
  private mode: Mode = 'structure';
  private depth = 0;
  /** By depth, 1 and 2: whether it is an object, and the last name in it. */
  private readonly isObject = [false, false, false];
  private readonly names = ['', '', ''];
  private isValue = false;
  private name: Buffer[] = [];
  private nameLength = 0;
  private readonly codeBytes: Gathered;
  /** The begin of a character or escape whose end has not come. */
  private carried: Buffer = none;

  /** `bodyBytes`: length of the body, 0 if it is not known. */
  constructor(bodyBytes: number) {
    this.codeBytes = new Gathered(bodyBytes);
  }

  /** Bytes of the rest until now. */
  get restBytes(): number {
    return this.restLength;
  }

  /** Takes the next bytes. Throws ApiError (400) for a code that is no JSON text. */
  push(given: Buffer): void {
    const chunk = this.carried.length === 0 ? given : Buffer.concat([this.carried, given]);
    this.carried = none;
    this.scan(chunk, false);
  }

  /** What the whole body has. Throws ApiError (400). */
  end(): ScannedBody {
    const { carried } = this;
    this.carried = none;
    this.scan(carried, true);
    if (this.mode === 'code') throw malformedContent('Unterminated string in JSON');
    return { rest: Buffer.concat(this.rest), codes: this.codes };
  }

  private scan(chunk: Buffer, isLast: boolean): void {
    const marks = new Marks(chunk);
    for (let at = 0; at < chunk.length;) {
      switch (this.mode) {
        case 'structure':
          at = this.structure(chunk, at);
          break;
        case 'name':
        case 'text':
          at = this.text(chunk, at, marks, isLast);
          break;
        case 'code':
          at = this.code(chunk, at, marks, isLast);
          break;
      }
    }
  }

  /** Up to the first quote, that included. */
  private structure(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      switch (chunk[at]) {
        case openBrace:
        case openBracket:
          this.depth += 1;
          this.isValue = false;
          if (this.depth <= 2) {
            this.isObject[this.depth] = chunk[at] === openBrace;
            this.names[this.depth] = '';
          }
          break;
        case closeBrace:
        case closeBracket:
          this.depth -= 1;
          this.isValue = false;
          break;
        case colon:
          this.isValue = true;
          break;
        case comma:
          this.isValue = false;
          break;
        case quote: {
          this.keep(chunk.subarray(from, at + 1));
          this.mode = this.modeOfText();
          this.name = [];
          this.nameLength = 0;
          return at + 1;
        }
        default:
      }
    }
    this.keep(chunk.subarray(from));
    return chunk.length;
  }

  private modeOfText(): Mode {
    const { depth, isValue, names } = this;
    if (depth < 1 || depth > 2 || this.isObject[depth] !== true) return 'text';
    if (depth === 2 && (names[1] !== 'exec' || this.isObject[1] !== true)) return 'text';
    if (!isValue) return 'name';
    return depth === 2 && codeFields.includes(names[2] ?? '') ? 'code' : 'text';
  }

  /** A text of the rest, up to its end. */
  private text(chunk: Buffer, from: number, marks: Marks, isLast: boolean): number {
    let at = from;
    for (;;) {
      const [end, escape] = [marks.quote(at), marks.backslash(at)];
      if (escape < end) {
        if (escape + 1 >= chunk.length) return this.carry(chunk, from, escape, isLast);
        at = escape + 2;
        continue;
      }
      const piece = chunk.subarray(from, Math.min(end + 1, chunk.length));
      this.keep(piece);
      if (this.mode === 'name') this.keepName(piece);
      if (end >= chunk.length) return chunk.length;
      if (this.mode === 'name') this.names[this.depth] = this.nameText();
      this.mode = 'structure';
      return end + 1;
    }
  }

  /** Keeps what is before an escape that has not come whole, and leaves the escape to the next chunk. */
  private carry(chunk: Buffer, from: number, escape: number, isLast: boolean): number {
    const end = isLast ? chunk.length : escape;
    this.keep(chunk.subarray(from, end));
    if (this.mode === 'name') this.keepName(chunk.subarray(from, end));
    this.carried = Buffer.from(chunk.subarray(end));
    return chunk.length;
  }

  private keepName(piece: Buffer): void {
    this.nameLength += piece.length;
    if (this.nameLength <= mostNameBytes) this.name.push(piece);
  }

  private nameText(): string {
    if (this.nameLength > mostNameBytes) return '';
    try {
      return JSON.parse(`"${Buffer.concat(this.name).toString('utf8')}`) as string;
    } catch {
      // The rest will not be valid either.
      return '';
    }
  }

  /** A piece of code, up to its end or to a character that has not come whole. */
  private code(chunk: Buffer, from: number, marks: Marks, isLast: boolean): number {
    let at = from;
    let hasEscapes = false;
    for (;;) {
      const [end, escape] = [marks.quote(at), marks.backslash(at)];
      if (escape < end) {
        hasEscapes = true;
        const mayGoOn = chunk[escape + 1] === letterU || escape + 1 >= chunk.length;
        if (mayGoOn && escape + pairBytes > chunk.length && !isLast) {
          this.keepCode(chunk.subarray(from, escape), hasEscapes);
          this.carried = Buffer.from(chunk.subarray(escape));
          return chunk.length;
        }
        at = this.afterEscape(chunk, escape);
        continue;
      }
      if (end < chunk.length) {
        this.keepCode(chunk.subarray(from, end), hasEscapes);
        this.codes.set(this.names[2] ?? '', this.codeBytes.take());
        this.keep(chunk.subarray(end, end + 1));
        this.mode = 'structure';
        return end + 1;
      }
      const whole = isLast ? chunk.length : wholeCharacters(chunk, Math.max(at, from));
      this.keepCode(chunk.subarray(from, whole), hasEscapes);
      this.carried = Buffer.from(chunk.subarray(whole));
      return chunk.length;
    }
  }

  /** Where an escape ends. The two halves of a pair are taken together. */
  private afterEscape(chunk: Buffer, escape: number): number {
    if (chunk[escape + 1] !== letterU) return escape + 2;
    const isPair =
      /^[dD][89abAB]$/.test(chunk.toString('latin1', escape + 2, escape + 4)) &&
      chunk[escape + 6] === backslash &&
      chunk[escape + 7] === letterU;
    return escape + (isPair ? pairBytes : pairBytes / 2);
  }

  private keepCode(escaped: Buffer, hasEscapes: boolean): void {
    if (escaped.length === 0) return;
    if (!hasEscapes) {
      if (hasControlCharacter(escaped)) throw malformedContent('Bad control character in JSON');
      this.codeBytes.add(escaped);
      return;
    }
    try {
      this.codeBytes.add(Buffer.from(JSON.parse(`"${escaped.toString('utf8')}"`) as string));
    } catch (error) {
      throw malformedContent((error as Error).message);
    }
  }

  private keep(piece: Buffer): void {
    this.restLength += piece.length;
    this.rest.push(piece);
  }
}

/**
 * Bytes that are put together as they come, so that the chunks they came in are free at once, and no large body is held twice.
 */
class Gathered {
  private bytes = none;
  private from = 0;
  private to = 0;

  constructor(private readonly capacity: number) {}

  add(piece: Buffer): void {
    const length = this.to - this.from + piece.length;
    if (this.to + piece.length > this.bytes.length) {
      const begun = this.bytes.subarray(this.from, this.to);
      // More than a known length, too: what is no UTF-8 becomes characters that take more bytes.
      this.bytes = Buffer.allocUnsafeSlow(Math.max(this.capacity, 2 * length));
      [this.from, this.to] = [0, begun.copy(this.bytes)];
    }
    this.to += piece.copy(this.bytes, this.to);
  }

  /** The bytes since the last call. */
  take(): Buffer {
    const taken = this.bytes.subarray(this.from, this.to);
    this.from = this.to;
    return taken;
  }
}

/** The next quotes and backslashes of a chunk; its length where there are no more. Each is looked for once. */
class Marks {
  private nextQuote = -1;
  private nextBackslash = -1;

  constructor(private readonly chunk: Buffer) {}

  quote(at: number): number {
    if (this.nextQuote < at) this.nextQuote = this.find(quote, at);
    return this.nextQuote;
  }

  backslash(at: number): number {
    if (this.nextBackslash < at) this.nextBackslash = this.find(backslash, at);
    return this.nextBackslash;
  }

  private find(byte: number, at: number): number {
    const found = this.chunk.indexOf(byte, at);
    return found < 0 ? this.chunk.length : found;
  }
}

/** The end of the last whole character of UTF-8 in a chunk, `from` at least. */
function wholeCharacters(chunk: Buffer, from: number): number {
  for (let back = 1; back <= 3 && chunk.length - back >= from; back += 1) {
    const byte = chunk[chunk.length - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    const bytes = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return bytes > back ? chunk.length - back : chunk.length;
  }
  return chunk.length;
}

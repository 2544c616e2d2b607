import { NumberLiteral, type Json, type JsonMap } from './json.js';

const maxDepth = 1000;
const plainText = /[ !#-[\]-\uffff]*/y; // all but quote, backslash and control characters
const numeral = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const space = /[ \t\r\n]*/y;
const escapes: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/**
 * Reads the JSON value at the start of `text`. Unless `whole` is set, the text after the value is ignored, as for
 * parameters in wsk. Messages are worded like the Go CLI's.
 * @throws SyntaxError if the text does not start with JSON, or the value is nested more than 1,000 deep.
 */
export function parseJson(text: string, { whole = false } = {}): Json {
  let position = 0;
  let depth = 0;

  function skip(pattern: RegExp): string {
    pattern.lastIndex = position;
    const found = pattern.exec(text)?.[0] ?? '';
    position += found.length;
    return found;
  }

  function unexpected(where: string): SyntaxError {
    const code = text.codePointAt(position);
    if (code === undefined) return new SyntaxError('unexpected EOF');
    const letter = String.fromCodePoint(code);
    const shown =
      letter === "'" ? "\\'" : code < 0x20 || letter === '\\' ? JSON.stringify(letter).slice(1, -1) : letter;
    return new SyntaxError(`invalid character '${shown}' ${where}`);
  }

  function value(): Json {
    skip(space);
    const first = text[position];
    if (first === '{') return nested(object);
    if (first === '[') return nested(list);
    if (first === '"') return string();
    if (first === '-' || (first !== undefined && first >= '0' && first <= '9')) return number();
    if (first === 't') return word('true', true);
    if (first === 'f') return word('false', false);
    if (first === 'n') return word('null', null);
    throw unexpected('looking for beginning of value');
  }

  function nested(read: () => Json): Json {
    if (++depth > maxDepth) throw new SyntaxError('exceeded max depth');
    position++;
    const result = read();
    depth--;
    return result;
  }

  function object(): JsonMap {
    const members: JsonMap = new Map();
    skip(space);
    if (text[position] === '}') {
      position++;
      return members;
    }
    for (;;) {
      skip(space);
      if (text[position] !== '"') throw unexpected('looking for beginning of object key string');
      const key = string();
      skip(space);
      if (text[position] !== ':') throw unexpected('after object key');
      position++;
      members.set(key, value());
      if (ends('}', 'after object key:value pair')) return members;
    }
  }

  function list(): Json[] {
    const items: Json[] = [];
    skip(space);
    if (text[position] === ']') {
      position++;
      return items;
    }
    for (;;) {
      items.push(value());
      if (ends(']', 'after array element')) return items;
    }
  }

  function ends(close: string, where: string): boolean {
    skip(space);
    const next = text[position];
    if (next !== ',' && next !== close) throw unexpected(where);
    position++;
    return next === close;
  }

  function string(): string {
    position++;
    let result = '';
    for (;;) {
      result += skip(plainText);
      const next = text[position];
      if (next === '"') {
        position++;
        return result;
      }
      if (next !== '\\') throw unexpected('in string literal');
      position++;
      result += escape();
    }
  }

  function escape(): string {
    const letter = text[position] ?? '';
    const plain = escapes[letter];
    if (plain === undefined && letter !== 'u') throw unexpected('in string escape code');
    position++;
    if (plain !== undefined) return plain;
    for (let digits = 0; digits < 4; digits++, position++) {
      if (!/[0-9a-fA-F]/.test(text[position] ?? '')) throw unexpected('in \\u hexadecimal character escape');
    }
    return String.fromCharCode(parseInt(text.slice(position - 4, position), 16));
  }

  function number(): NumberLiteral {
    const literal = skip(numeral);
    if (literal === '') {
      position++;
      throw unexpected('in numeric literal');
    }
    if (text[position] === '.') {
      position++;
      throw unexpected('after decimal point in numeric literal');
    }
    return new NumberLiteral(literal);
  }

  function word<T extends Json>(expected: string, result: T): T {
    for (const letter of expected) {
      if (text[position] !== letter) throw unexpected(`in literal ${expected} (expecting '${letter}')`);
      position++;
    }
    return result;
  }

  skip(space);
  if (position === text.length) throw new SyntaxError('EOF');
  const result = value();
  skip(space);
  if (whole && position < text.length) throw unexpected('after top-level value');
  return result;
}

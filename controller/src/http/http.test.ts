import { describe, expect, test } from '@jest/globals';
import { acceptsJson } from './answer.js';
import { checkContentType, parseArguments, booleanParameter, listRange, parseInt32, timeParameter } from './request.js';

const query = (text: string): URLSearchParams => new URLSearchParams(text);

describe('Accept', () => {
  test.each([undefined, '', '*/*', 'application/json', 'text/html, application/*;q=0.5', 'APPLICATION/JSON;charset=x'])(
    '%j takes JSON',
    (accept) => {
      expect(acceptsJson(accept)).toBe(true);
    },
  );
  test.each(['text/plain', 'application/xml', 'application/json;q=0', '*/*; q=0.000'])('%j does not', (accept) => {
    expect(acceptsJson(accept)).toBe(false);
  });
});

describe('Content-Type', () => {
  test.each([
    ['application/json', 5],
    ['application/json;charset=UTF-8', 5],
    [' Application/Json ; x=y', 5],
    [undefined, 0],
  ])('%j is fine', (type, bytes) => {
    expect(() => checkContentType(type, bytes)).not.toThrow();
  });
  test.each([
    ['text/plain', 0, 'text/plain'],
    ['application/jsonp', 1, 'application/jsonp'],
    ['', 1, ''],
    [undefined, 1, 'application/octet-stream'],
  ])('%j is not', (type, bytes, named) => {
    expect(() => checkContentType(type, bytes)).toThrow(`The request's Content-Type [${named}] is not supported.`);
  });
});

describe('arguments', () => {
  test('are an object, or nothing', () => {
    expect(parseArguments(Buffer.from('{"a":1}'))).toEqual({ a: 1 });
    expect(parseArguments(Buffer.alloc(0))).toEqual({});
  });
  test.each([' ', '[]', '1', '"a"', '{', 'undefined', '\ufeff{}'])('%j is refused', (text) => {
    expect(() => parseArguments(Buffer.from(text))).toThrow('The request content was malformed:\n');
  });
});

describe('query parameters', () => {
  test('booleans', () => {
    for (const yes of ['true', 'TRUE', 'yes', 'on', '1'])
      expect(booleanParameter(query(`a=${yes}`), 'a', false)).toBe(true);
    for (const no of ['false', 'No', 'off', '0']) expect(booleanParameter(query(`a=${no}`), 'a', true)).toBe(false);
    for (const absent of ['', 'a=', 'b=true']) expect(booleanParameter(query(absent), 'a', true)).toBe(true);
    expect(() => booleanParameter(query('a=2'), 'a', true)).toThrow("'2' is not a valid Boolean value");
  });

  test.each([
    ['5', 5],
    ['+5', 5],
    ['-5', -5],
    ['2147483647', 2147483647],
    ['-2147483648', -2147483648],
    ['2147483648', undefined],
    ['', undefined],
    ['5.0', undefined],
    ['0x5', undefined],
    [' 5', undefined],
  ])('%j as an integer', (text, value) => {
    expect(parseInt32(text)).toBe(value);
  });

  test('ranges of lists', () => {
    expect(listRange(query(''), 'actions')).toEqual({ skip: 0, limit: 30 });
    expect(listRange(query('skip=7&limit=0'), 'actions')).toEqual({ skip: 7, limit: 200 });
    expect(() => listRange(query('skip='), 'rules')).toThrow("The value '' is not an integer for rules.");
  });

  test('times', () => {
    expect(timeParameter(query(''), 'since')).toBeUndefined();
    expect(timeParameter(query('since=1700000000000'), 'since')).toBe(1700000000000);
    expect(timeParameter(query('since=-1'), 'since')).toBe(-1);
    for (const bad of ['', 'x', '1e3', '99999999999999999']) {
      expect(() => timeParameter(query(`since=${bad}`), 'since')).toThrow(`epoch seconds: ${bad}`);
    }
  });
});

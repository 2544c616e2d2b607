import { expect, test } from '@jest/globals';
import { printable, printableJson } from './printable.js';

test('a text keeps tabs and line ends of all control characters, and colours where they are asked for', () => {
  const text = 'a\u001b[2Jb\u0007\u009b1A\tc\r\nd\r\u202ee\u001b[1mf\u001b[0m';
  expect(printable(text)).toBe('a[2Jb1A\tc\r\ndef');
  expect(printable(text, true)).toBe('a[2Jb1A\tc\r\nde\u001b[1mf\u001b[0m');
});

test('JSON text keeps its value', () => {
  const value = { name: 'a\u007f\u009b\u202e\u001b值' };
  const text = printableJson(JSON.stringify(value));
  expect(text).toBe('{"name":"a\\u007f\\u009b\\u202e\\u001b值"}');
  expect(JSON.parse(text)).toEqual(value);
});

import { expect, test } from '@jest/globals';
import { h } from 'preact';
import { printable, printTextsOnly } from './printable.js';

test('a text has no control characters but tabs and line ends', () => {
  expect(printable('a\u001b[2Jb\u0007\u009b1A\tc\r\nd\u202ee\u2066')).toBe('a[2Jb1A\tc\r\nde');
  expect(printable('größer 值')).toBe('größer 值');
});

test('texts and labels of elements are printed without them, values of inputs are kept', () => {
  printTextsOnly();
  const text = 'a\u001bb';
  const { props } = h('span', { title: text }, text, [text, 1], h('b', null, text));
  expect(props).toMatchObject({ title: 'ab', children: ['ab', ['ab', 1], { props: { children: 'ab' } }] });
  expect(h('input', { value: text }).props).toEqual({ value: text });
});

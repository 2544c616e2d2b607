import { describe, expect, test } from '@jest/globals';
import { readWarm } from './action-annotations.js';

describe('annotation warm', () => {
  test('is read with its defaults, its imports sorted and without repetition', () => {
    expect(readWarm({})).toEqual({ imports: [], cuda: false });
    expect(readWarm({ imports: ['torch', 'numpy', 'torch'], cuda: true, entry: 'load' })).toEqual({
      imports: ['numpy', 'torch'],
      cuda: true,
      entry: 'load',
    });
    expect(readWarm({ snapshot: true })).toEqual({ imports: [], cuda: false, snapshot: true });
    expect(readWarm({ imports: ['os.path', 'node:fs', '@scope/package'] }).imports).toHaveLength(3);
  });

  test.each([
    ['no object', [], /must be an object/],
    ['an unknown field', { import: [] }, /found 'import'/],
    ['no list', { imports: 'torch' }, /'imports' .* list/],
    ['a number among the names', { imports: [1] }, /'imports'/],
    ['a path', { imports: ['/etc/passwd'] }, /'imports'/],
    ['a way up', { imports: ['a/../../b'] }, /'imports'/],
    ['an option', { imports: ['-c'] }, /'imports'/],
    ['too many', { imports: Array.from({ length: 65 }, (_, index) => `m${index}`) }, /at most 64/],
    ['cuda as a text', { cuda: 'yes' }, /'cuda'/],
    ['snapshot as a number', { snapshot: 1 }, /'snapshot'/],
    ['a call as entry', { entry: 'load()' }, /'entry'/],
    ['an empty entry', { entry: '' }, /'entry'/],
  ])('%s is refused', (_, value, message) => {
    expect(() => readWarm(value)).toThrow(message);
  });
});

import { expect, test } from '@jest/globals';
import { commandLine, parseOptions, UsageError } from './options.js';

test('defaults', () => {
  expect(parseOptions(['invoke'])).toEqual({
    bench: 'invoke',
    check: false,
    seed: 1,
    rounds: 5,
    seconds: 5,
    samples: 50,
    idleSeconds: 60,
    loadSeconds: 300,
    parts: [],
    client: 'auto',
  });
});

test('the command of a run gives the same options again', () => {
  const options = parseOptions(['cold', '--seed', '9', '--samples', '3', '--parts', 'cold,stem', '--client', 'wrk']);
  expect(options.parts).toEqual(['cold', 'stem']);
  expect(parseOptions(commandLine(options).split(' ').slice(4))).toEqual(options);
});

test.each([
  [[]],
  [['a', 'b']],
  [['a', '--rounds', '0']],
  [['a', '--seed', 'x']],
  [['a', '--client', 'ab']],
  [['a', '--no']],
])('%j is refused', (args) => {
  expect(() => parseOptions(args)).toThrow(UsageError);
});

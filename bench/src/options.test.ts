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
    calls: 1000,
    parts: [],
    client: 'auto',
    beside: [],
  });
});

test('the command of a run gives the same options again', () => {
  const options = parseOptions(['cold', '--seed', '9', '--samples', '3', '--parts', 'cold,stem', '--client', 'wrk']);
  expect(options.parts).toEqual(['cold', 'stem']);
  expect(parseOptions(commandLine(options).split(' ').slice(4))).toEqual(options);
  expect(commandLine(options, 'research')).toMatch(/^npm run research -- /);
});

test('a quick run is asked for by its flag, and its command says so', () => {
  expect(parseOptions(['world']).quick).toBe(undefined);
  const options = parseOptions(['world', '--quick']);
  expect(options.quick).toBe(true);
  expect(commandLine(options, 'research')).toContain(' --quick');
});

test('the command of a run names the file of samples', () => {
  const options = parseOptions(['predictor', '--gpu-samples', 'some/samples.jsonl']);
  expect(options.gpuSamples).toBe('some/samples.jsonl');
  expect(parseOptions(commandLine(options).split(' ').slice(4))).toEqual(options);
});

test('a peer has an address, and what its requests need', () => {
  const flags = [
    '--beside',
    'other=http://h:1/f',
    '--beside-header',
    'other=X-Key: a=b',
    '--beside-method',
    'other=PUT',
    '--beside-body',
    'other={}',
    '--beside-server',
    'other=7',
    '--beside-functions',
    'other=8,90',
  ];
  const { beside } = parseOptions(['invoke', ...flags, '--beside', 'third=http://h/']);
  const json = { 'Content-Type': 'application/json' };
  expect(beside).toEqual([
    {
      name: 'other',
      url: 'http://h:1/f',
      method: 'PUT',
      headers: { ...json, 'X-Key': 'a=b' },
      body: '{}',
      serverPids: [7],
      functionPids: [8, 90],
    },
    { name: 'third', url: 'http://h/', method: 'POST', headers: json },
  ]);
});

test.each([
  [['a', '--beside', 'http://h/']],
  [['a', '--beside', 'b=https://h/']],
  [['a', '--beside-body', 'b={}']],
  [['a', '--beside', 'b=http://h/', '--beside-header', 'b=none']],
  [['a', '--beside', 'b=http://h/', '--beside-server', 'b=1,x']],
  [[]],
  [['a', 'b']],
  [['a', '--rounds', '0']],
  [['a', '--seed', 'x']],
  [['a', '--client', 'ab']],
  [['a', '--no']],
])('%j is refused', (args) => {
  expect(() => parseOptions(args)).toThrow(UsageError);
});

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { conformanceCases } from './cases.js';

const text = readFileSync(fileURLToPath(new URL('../../../docs/conformance.md', import.meta.url)), 'utf8');
const states = ['covered', 'different', 'engine'] as const;

interface Line {
  suite: string;
  state: string;
  name: string;
  reason: string | undefined;
}

/** The lines `- state: name — reason` below the headings of the suites. */
const [, ...parts] = text.split(/^### /m);
const lines: Line[] = parts.flatMap((part) => {
  const [suite = '', ...rest] = part.split('\n');
  return rest.flatMap((line) => {
    const [, state = '', name = '', reason] = /^- (\w+): (.+?)(?: — (.+))?$/.exec(line) ?? [];
    return (states as readonly string[]).includes(state) ? [{ suite, state, name, reason }] : [];
  });
});

test('the cases that are said to be covered are those that the tables stand for', () => {
  const documented = lines.filter(({ state }) => state === 'covered').map(({ suite, name }) => `${suite}: ${name}`);
  const stood = new Set(conformanceCases.flatMap(({ stands }) => stands));
  expect(documented.filter((name) => !stood.has(name))).toEqual([]);
  expect([...stood].filter((name) => !documented.includes(name))).toEqual([]);
  expect(new Set(documented).size).toBe(documented.length);
});

test('what is not covered has a reason', () => {
  const unexplained = lines.filter(({ state, reason }) => (state === 'covered') === (reason !== undefined));
  expect(unexplained).toEqual([]);
});

test('the counts are those of the lines; 304 of the cases take a server, a key and the runtimes', () => {
  const count = (suite: string, wanted?: string): number =>
    lines.filter((line) => line.suite === suite && (wanted ?? line.state) === line.state).length;
  const rows = [...text.matchAll(/^\| (\w+) +\|((?: +\d+ \|){4})$/gm)].map(([, suite = '', numbers = '']) => ({
    suite,
    said: numbers.match(/\d+/g)?.map(Number) ?? [],
  }));
  const totals: number[][] = [];
  let sum = [0, 0, 0, 0];
  for (const { suite, said } of rows) {
    const counted = suite === 'all' ? sum : [count(suite), ...states.map((state) => count(suite, state))];
    expect({ suite, said }).toEqual({ suite, said: counted });
    if (suite === 'all') totals.push(said);
    sum = suite === 'all' ? [0, 0, 0, 0] : sum.map((number, at) => number + (said[at] ?? 0));
  }
  expect(rows.map(({ suite }) => suite).filter((suite) => suite !== 'all')).toEqual([
    ...new Set(lines.map(({ suite }) => suite)),
  ]);
  expect(totals.map(([all]) => all)).toEqual([304, 26, 205]);
});

test('each case names the file of OpenWhisk that it is about', () => {
  const nameless = conformanceCases.filter(({ source }) => !/\.(scala|js|json|md|j2|conf)$/.test(source));
  expect(nameless).toEqual([]);
});

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

test('the counts are those of the lines, and there are 304', () => {
  const count = (suite: string, wanted?: string): number =>
    lines.filter((line) => (suite === 'all' || line.suite === suite) && (wanted ?? line.state) === line.state).length;
  const rows = [...text.matchAll(/^\| (\w+) +\|((?: +\d+ \|){4})$/gm)];
  expect(rows.map(([, suite]) => suite)).toEqual([...new Set(lines.map(({ suite }) => suite)), 'all']);
  for (const [, suite = '', numbers = ''] of rows) {
    const said = numbers.match(/\d+/g)?.map(Number);
    expect([suite, said]).toEqual([suite, [count(suite), ...states.map((state) => count(suite, state))]]);
  }
  expect(lines).toHaveLength(304);
});

test('each case names the file of OpenWhisk that it is about', () => {
  const nameless = conformanceCases.filter(({ source }) => !/\.(scala|js|md|j2|conf)$/.test(source));
  expect(nameless).toEqual([]);
});

// OpenWhisk's behaviour over HTTP, fact by fact (docs/conformance.md).
import { afterAll, describe, expect, test } from '@jest/globals';
import { conformanceCases } from './cases.js';
import type { ConformanceCase } from './conformance-case.js';
import { lacks, openHost } from './host.js';
import { Trial } from './trial.js';

const areas = new Map<string, { passed: number; total: number }>();
const caseMs = 60_000;
// Opened by the first case, because concurrent cases begin before any hook.
let opened: ReturnType<typeof openHost> | undefined;

function countsOf(area: string): { passed: number; total: number } {
  const counts = areas.get(area) ?? { passed: 0, total: 0 };
  areas.set(area, counts);
  return counts;
}

async function runCase({ area, run }: ConformanceCase): Promise<void> {
  const counts = countsOf(area);
  counts.total += 1;
  const trial = new Trial(await (opened ??= openHost()));
  try {
    await run(trial);
  } finally {
    await trial.clean();
  }
  counts.passed += 1;
}

afterAll(async () => {
  if (opened === undefined) return;
  await (await opened).close();
  const lines = [...areas].map(([area, { passed, total }]) => `conformance: ${area} ${passed}/${total}`);
  process.stdout.write(`${lines.join('\n')}\n`);
});

describe.each([...new Set(conformanceCases.map((one) => one.area))])('%s:', (area) => {
  for (const one of conformanceCases.filter((candidate) => candidate.area === area)) {
    const lack = one.needs && lacks[one.needs];
    if (lack === undefined) test.concurrent(one.fact, () => runCase(one), caseMs);
    else test.skip(`${one.fact} (skipped: ${lack})`, () => undefined);
  }
});

test('each fact is named once', () => {
  const names = conformanceCases.map(({ area, fact }) => `${area}: ${fact}`);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

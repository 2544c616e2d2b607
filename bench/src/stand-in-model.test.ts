import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { repositoryDir } from './machine.js';
import { readStandInModel, soloMs, standInSlowdowns } from './stand-in-model.js';
import type { StandInClient } from './stand-in-model.js';

interface Case {
  name: string;
  device: string;
  clients: StandInClient[];
  slowdown: number[];
}

const { cases } = JSON.parse(readFileSync(join(repositoryDir, 'native/cudasim/contention/cases.json'), 'utf8')) as {
  cases: Case[];
};
const model = readStandInModel();

describe("the simulator's copy of the stand-in's model", () => {
  test.each(cases)('$name', ({ device, clients, slowdown }) => {
    standInSlowdowns(model, device, clients).forEach((found, i) =>
      expect(found / (slowdown[i] as number)).toBeCloseTo(1, 3),
    );
  });

  test('says where every figure is from', () => {
    const { sources, workloads } = model as never as { sources: object; workloads: { from: object }[] };
    const named = new Set(workloads.flatMap(({ from }) => Object.values(from)));
    expect([...named].sort()).toEqual(Object.keys(sources).sort());
  });

  test('takes times from a straight line', () => {
    const [first] = model.workloads;
    expect(first && soloMs(first, 4)).toBeCloseTo(5.185 + 4 * 1.4292, 6);
  });

  test('knows no other names', () => {
    expect(() => standInSlowdowns(model, 'a100-40', [{ workload: 'none', batch: 1, percent: 100 }])).toThrow('none');
  });
});

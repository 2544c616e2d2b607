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

  const whole = (workload: string, batch: number, isTraining = false): StandInClient => ({
    ...{ workload, batch, isTraining, percent: 100 },
  });

  test('two functions that fill the GPU slow down unequally by what was measured of them', () => {
    const [resnet50 = 0, resnet18 = 0] = standInSlowdowns(model, 'v100-32', [
      whole('resnet50', 64, true),
      whole('resnet18', 64, true),
    ]);
    expect(resnet18 / resnet50).toBeGreaterThan(1.05);
    expect(resnet50).toBeGreaterThan(1.5);
    const [alike, like] = standInSlowdowns(model, 'v100-32', [whole('resnet50', 64), whole('resnet18', 64)]);
    expect(alike).toBeCloseTo(like as number, 6);
  });

  test('disjoint quotas lose nothing beyond the quota, and overlapping ones much', () => {
    const at = (percent: number): number[] =>
      standInSlowdowns(model, 'a100-40', [
        { workload: 'resnet50', batch: 16, percent },
        { workload: 'vgg16', batch: 8, percent },
      ]);
    const alone = standInSlowdowns(model, 'a100-40', [{ workload: 'resnet50', batch: 16, percent: 50 }]);
    expect(at(50)[0]).toBeCloseTo(alone[0] as number, 6);
    expect(Math.min(...at(100))).toBeGreaterThan(1.5);
  });

  test('one that fills little loses more beside one that fills all than the other way round', () => {
    const [light = 0, heavy = 0] = standInSlowdowns(model, 'a100-80', [whole('resnet18', 4), whole('vgg16', 16)]);
    expect(light).toBeGreaterThan(heavy);
    expect(light).toBeLessThan(1.6);
    expect(heavy).toBeLessThan(1.2);
  });

  test.each([2, 3, 4])('%i that fill the GPU lose about their number, as measured', (count) => {
    const [slowdown = 0] = standInSlowdowns(model, 'a100-80', Array<StandInClient>(count).fill(whole('vgg16', 16)));
    expect(slowdown / count).toBeGreaterThan(0.8);
    expect(slowdown / count).toBeLessThan(1.05);
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

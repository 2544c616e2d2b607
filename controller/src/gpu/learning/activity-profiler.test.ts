import { beforeEach, describe, expect, test } from '@jest/globals';
import type { DeviceMode, DeviceStatus, NodeStatus, Resident, ShareClass } from '@gpuwhisk/common/gpu';
import { FunctionProfiles } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import { hasForeignProcesses, ActivityProfiler } from './activity-profiler.js';

interface Row {
  at?: number;
  mode?: DeviceMode;
  /** Utilisation by process; undefined: the driver does not report it. */
  utilisations?: Record<string, number | undefined>;
  figures?: Partial<DeviceStatus>;
  shareClass?: ShareClass;
  resident?: Partial<Resident>;
}

/** A node's row. By default function a keeps the device busy all the time. */
function row({
  at = 0,
  mode = 'mps',
  utilisations = { a: 1 },
  figures,
  shareClass = 100,
  resident,
}: Row = {}): NodeStatus {
  const limit = shareClass / 100;
  const residents = ['a', 'b'].map((name) => ({
    ...{ container: `c-${name}`, action: `/guest/${name}`, device: 'GPU-0', memoryMiB: 100, activations: [] },
    share: { shareClass, smRequest: limit, smLimit: limit, memoryMiB: 100 },
    ...resident,
  }));
  return {
    ...{ invoker: 'invoker0', version: 1, at, residents },
    devices: [
      {
        ...{ uuid: 'GPU-0', index: 0, name: 'NVIDIA H100', type: 'h100', smCount: 132, memoryMiB: 80_000 },
        ...{ mode, slices: [], simulated: false },
      },
    ],
    status: [
      {
        ...{ uuid: 'GPU-0', at, usedMemoryMiB: 0, utilisation: 1, health: { state: 'healthy', reasons: [] } },
        processes: Object.entries(utilisations).map(([name, utilisation], pid) => ({
          ...{ pid, memoryMiB: 10, ...(name !== 'workload' && { container: `c-${name}` }) },
          ...(utilisation !== undefined && { utilisation }),
        })),
        ...figures,
      },
    ],
  };
}

let profiles: FunctionProfiles;
let profiler: ActivityProfiler;
beforeEach(() => {
  profiles = new FunctionProfiles();
  profiler = new ActivityProfiler(profiles);
  for (const name of ['a', 'b']) profiles.of({ function: `/guest/${name}`, version: '1', batch: 1, arrivedAt: 1 });
});
const performanceData = (): unknown[] =>
  profiles.all().map(({ function: name, features, fillSource }) => [name, features, fillSource]);

describe('activity of SMs and memory', () => {
  const figures = { smActivity: 0.1, dramActivity: 0.3 };

  test('is what the function that alone kept the device busy fills, however busy it was', () => {
    profiler.observe(row({ figures }));
    expect(performanceData()).toEqual([['/guest/a', { smUtil: 0.1, dramUtil: 0.3 }, 'gpm']]);
    profiler.observe(row({ figures: { smActivity: 0.08, dramActivity: 0.2 }, utilisations: { a: 0.95, b: 0 } }));
    expect(performanceData()).toEqual([['/guest/a', { smUtil: 0.1, dramUtil: 0.3 }, 'gpm']]);
  });

  test('is absent where the chip or the mode does not tell it: no utilisation stands for it', () => {
    profiler.observe(row());
    profiler.observe(row({ mode: 'timeslice' }));
    expect(performanceData()).toEqual([]);
  });

  test.each<[string, Row]>([
    ['another function computes, too', { utilisations: { a: 1, b: 0.1 } }],
    ['a workload computes, too', { utilisations: { a: 1, workload: 0.1 } }],
    ['only a workload computes', { utilisations: { a: 0, workload: 1 } }],
    ['the driver does not tell which of two processes computes', { utilisations: { a: undefined, b: undefined } }],
    ['the device was idle for part of the time', { figures: { ...figures, utilisation: 0.5 } }],
    ['it is not told how busy the device was', { utilisations: {}, figures }],
    ['the process has no action yet', { resident: { action: undefined as never } }],
  ])('is not attributed to a function where %s', (_, more) => {
    profiler.observe(row({ figures, ...more }));
    expect(performanceData()).toEqual([]);
  });

  test('of a function that uses up its share says nothing of the whole GPU', () => {
    profiler.observe(row({ figures: { smActivity: 0.1, dramActivity: 0.3 }, shareClass: 10 }));
    expect(performanceData()).toEqual([]);
    profiler.observe(row({ figures: { smActivity: 0.1, dramActivity: 0.3 }, shareClass: 30 }));
    expect(performanceData()).toEqual([['/guest/a', { smUtil: 0.1, dramUtil: 0.3 }, 'gpm']]);
  });
});

describe('launches', () => {
  let at = 0;
  /** Observes four rows, a second apart, of a process that launches `rate` blocks in 5 ms. */
  const launch = (
    shareClass: ShareClass,
    rate: number,
    { waits = 0, ...more }: Row & { waits?: number } = {},
  ): void => {
    for (let look = 0; look < 4; look += 1, at += 1000) {
      const launches = {
        ...{ blocks: at * (rate / 5), waits: waits * look, soloRate: 0, cycles: 0, cycleMs: 0, cycleBatch: 0 },
        state: 'NONE' as const,
      };
      profiler.observe(row({ at, shareClass, ...more, resident: { launches, ...more.resident } }));
    }
    // The process ends, and another one starts to count.
    profiler.observe(row({ at, utilisations: {} }));
  };

  test('at two classes say what a function fills', () => {
    launch(100, 800);
    expect(performanceData()).toEqual([['/guest/a', undefined, undefined]]);
    launch(10, 795);
    expect(performanceData()).toEqual([['/guest/a', { smUtil: 0.1 }, 'launches']]);
  });

  test('are more trusted than activity', () => {
    profiler.observe(row({ figures: { smActivity: 0.7 } }));
    launch(100, 800);
    launch(10, 400);
    expect(performanceData()).toEqual([['/guest/a', { smUtil: 0.2 }, 'launches']]);
  });

  const held = { share: { shareClass: 10, smRequest: 0.05, smLimit: 0.05, memoryMiB: 100 } } as const;
  test.each<[string, Row & { waits?: number }]>([
    ['they had to wait', { waits: 1 }],
    ['tokens hold the process below its class', { resident: held }],
    ['another function computes, too', { utilisations: { a: 1, b: 1 } }],
    ['the device was idle for part of the time', { figures: { utilisation: 0.5 } }],
    ['nothing holds processes to a class', { mode: 'timeslice' }],
    ['the process has several devices', { resident: { gang: ['GPU-0', 'GPU-1'] } }],
  ])('do not count where %s', (_, more) => {
    launch(100, 800, more);
    launch(10, 800, more);
    expect(profiles.all().filter(({ features }) => features !== undefined)).toEqual([]);
  });
});

test('a process that is in no container of the platform is a workload', () => {
  const [status] = row().status;
  expect([hasForeignProcesses(status), hasForeignProcesses(undefined)]).toEqual([false, false]);
  expect(hasForeignProcesses({ ...status!, processes: [{ pid: 1, memoryMiB: 1 }] })).toBe(true);
});

import { describe } from '@jest/globals';
import { actionTimes } from '@gpuwhisk/gpu/simulate/simulated-times';
import { SimulatedActuator } from '@gpuwhisk/gpu/simulate/simulated-actuator';
import { newTotals } from '@gpuwhisk/gpu/simulate/replay';
import type { ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import { actuatorContract } from './actuator.js';
import type { ActuatorHarness } from './actuator.js';

const place = { type: 'a100-40', mode: 'mps', memoryMiB: 38_000 } as const;

describe('the simulated actuator', () => {
  actuatorContract(() => {
    const functions = new Map<string, ReplayJob>();
    const ended = new Map<string, 'ended' | 'stopped'>();
    const actuator: SimulatedActuator = new SimulatedActuator({
      places: [0, 1].map((at) => ({ ...place, id: `gpu${at}`, node: 'node0' })),
      ...{ keepsInstances: true, more: [place], times: { ...actionTimes, acquireMs: 5000 } },
      truth: { noise: 0, slowdowns: (clients) => new Float64Array(clients.length).fill(1), used: () => 1 },
      known: ({ action }) => functions.get(action),
      cutFails: () => (refuses ? 'No room.' : undefined),
    });
    const totals = newTotals();
    let runs = 0;
    let refuses = false;
    const put = (job: ReplayJob): void => {
      const { id: gpu, mode } = actuator.open[0]!;
      const share = mode === 'mig' ? 1 : job.task.share!;
      actuator.start({ job, task: job.task }, { gpu, share }, 1e9, 1);
    };
    const settle = (): void => {
      for (const { run, isStopped } of actuator.settle()) {
        if (isStopped && run.job.isIdempotent === true) put(run.job);
        else ended.set(run.task.id, isStopped ? 'stopped' : 'ended');
      }
    };
    const harness: ActuatorHarness = {
      actuator,
      view: () => ({
        ...{ at: actuator.now, waiting: [], gpus: actuator.open, ledger: actuator.ledger },
        runs: (id) => actuator.runOf(id),
        ...{ instances: actuator.instances, devices: actuator.deviceStates, nodes: actuator.nodes },
      }),
      run({ name, memoryMiB, share, isIdempotent = false }) {
        const id = `t${(runs += 1)}`;
        const job: ReplayJob = {
          ...{ workload: name, soloMs: 1e9, startMs: 500, isIdempotent },
          task: {
            ...{ id, function: `/alice/${name}`, version: '0.0.1', namespace: 'alice', batch: 1, gpus: 1, memoryMiB },
            ...{ share, arrivedAt: actuator.now, class: 'inference' },
          },
        };
        functions.set(job.task.function, job);
        put(job);
        const end = (): void => {
          const run = actuator.gpus.flatMap((gpu) => gpu.runs).find(({ task }) => task.id === id);
          if (run !== undefined) run.leftMs = 0;
        };
        return Promise.resolve({ end, outcome: () => ended.get(id) });
      },
      pass(ms) {
        const until = actuator.now + ms;
        for (;;) {
          settle();
          const next = Math.min(until, Math.max(actuator.now, actuator.nextInstant()));
          if (next > actuator.now) actuator.advance(next, [], totals);
          else if (actuator.nextInstant() > actuator.now) break;
          if (actuator.now >= until && actuator.nextInstant() > until) break;
        }
        settle();
        return Promise.resolve();
      },
      device: (index) => `gpu${index}`,
      refuseSlices: (now) => void (refuses = now),
      close: () => Promise.resolve(),
    };
    return Promise.resolve(harness);
  });
});

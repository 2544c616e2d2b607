// Rows of agents that arrive twice, late or out of order.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { gpuRowTtlMs, gpuTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { EmbeddedState } from '@gpuwhisk/common/state/embedded-state';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { Ledger } from '@gpuwhisk/gpu/view/ledger';
import type { Reservation } from '@gpuwhisk/gpu/view/occupancy';
import { a100, nodeRow } from '../api/gpu-nodes.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { GpuCluster } from './gpu-cluster.js';

const row = (version: number, at: number, residents: Resident[] = []): NodeStatus =>
  nodeRow([a100('GPU-0', { memoryMiB: 40_000 })], residents, { version, at });

describe('the table of nodes', () => {
  let clock: SimulatedClock;
  let state: EmbeddedState;
  let table: GpuTable;
  let heard: number[];
  beforeEach(async () => {
    clock = new SimulatedClock();
    state = embeddedState(clock);
    table = new GpuTable(state, clock);
    await clock.runUntil(table.open());
    heard = [];
    table.onRow(({ version }) => heard.push(version));
  });

  const tell = (one: NodeStatus): Promise<void> =>
    clock.runUntil(state.setRow(gpuTable, one.invoker, one as unknown as JsonValue));

  test('takes rows in order, each once', async () => {
    for (const one of [row(5, 500), row(5, 500), row(3, 300), row(6, 600), row(4, 400), row(6, 600), row(7, 700)]) {
      await tell(one);
    }
    expect(heard).toEqual([5, 6, 7]);
    expect(table.nodes()).toMatchObject([{ version: 7 }]);
  });

  test('any order of rows ends with the newest one', async () => {
    const random = seededRandom(4);
    for (let round = 0; round < 20; round += 1) {
      const first = 1 + 100 * round;
      const rows = Array.from({ length: 30 }, () => first + (random.uint32() % 20));
      for (const version of rows) await tell(row(version, 10 * version));
      expect(table.nodes()).toMatchObject([{ version: Math.max(...rows) }]);
    }
    expect(heard).toEqual([...new Set(heard)].sort((one, other) => one - other));
  });

  test('takes the rows of an agent that was started again, which counts from 1', async () => {
    await tell(row(900, 9000));
    await tell(row(1, 9500));
    await tell(row(2, 9501));
    expect(heard).toEqual([900, 1, 2]);
  });

  test('takes the rows of an agent whose clock was set back', async () => {
    await tell(row(900, 9000));
    await tell(row(901, 10));
    expect(heard).toEqual([900, 901]);
    // The agent has also restarted. Its rows look like late rows until the last accepted row expires.
    await tell(row(1, 5));
    expect(heard).toEqual([900, 901]);
    await clock.runFor(gpuRowTtlMs);
    await tell(row(2, 6));
    expect(heard).toEqual([900, 901, 2]);
  });

  test('a late row brings no node back that is gone', async () => {
    await tell(row(5, 500));
    await clock.runUntil(state.deleteRow(gpuTable, 'invoker0'));
    await tell(row(4, 400));
    expect(table.nodes()).toEqual([]);
    await tell(row(1, 900));
    expect(table.nodes()).toMatchObject([{ version: 1 }]);
  });

  test('rows that come again do not make a silent node heard of', async () => {
    await tell(row(5, 500));
    await clock.runFor(gpuRowTtlMs - 1);
    await tell(row(5, 500));
    await clock.runFor(1000);
    expect(table.nodes()).toEqual([]);
  });

  test('a node is not silent while this process is too busy to hear it', async () => {
    await clock.runFor(2 * gpuRowTtlMs);
    await tell(row(5, 500));
    clock.stall(gpuRowTtlMs);
    await clock.runFor(1);
    clock.stall(gpuRowTtlMs);
    expect(table.nodes()).toMatchObject([{ version: 5 }]);
    await clock.runFor(gpuRowTtlMs + 1);
    expect(table.nodes()).toEqual([]);
  });
});

test('a row that a ledger hears twice changes nothing', () => {
  const ledger = new Ledger();
  const resident: Resident = {
    ...{ container: 'c', action: '/a/f', namespace: 'a', isolation: 'shared', device: 'GPU-0', activations: ['a1'] },
    ...{ memoryMiB: 1000, share: { shareClass: 20, smRequest: 0.2, smLimit: 0.2, memoryMiB: 1000 } },
  };
  const held: Reservation = {
    ...{ activationId: 'a2', action: '/a/g', namespace: 'a', isolation: 'shared', ended: false },
    placement: { invoker: 'invoker0', devices: ['GPU-0'], share: resident.share, at: 0, epoch: 1, version: 5 },
  };
  const sums = (): unknown[] =>
    ledger
      .accounts()
      .map(({ id, load, freeMiB, availableMiB, clients, busy, occupants }) => [
        ...[id, load, freeMiB, availableMiB, clients, busy],
        occupants.map(({ id: occupant, users }) => [occupant, users]),
      ]);
  ledger.heard(row(5, 500, [resident]), 0);
  ledger.hold(held, Infinity);
  const before = sums();
  expect(ledger.heard(row(5, 500, [resident]), 0)).toEqual([]);
  expect([sums(), ledger.unended()]).toEqual([before, [held]]);
});

test('activations run once each while rows come twice and in another order', async () => {
  const cluster = await GpuCluster.start({ policy: 'fcfs' });
  await cluster.tell();
  const shown: NodeStatus[] = [];
  const again = async (): Promise<void> => {
    const { ledger } = cluster.scheduler.view().ledger!;
    shown.push(...ledger.rows());
    for (const old of shown.slice(-5)) await cluster.tellAgain(old);
  };
  const names = Array.from({ length: 12 }, (_, at) => `f${at}`);
  for (const name of names) {
    await cluster.accept(name, { memoryMiB: 12_000, features: { smUtil: 0.1 } });
    await again();
  }
  const ran: string[] = [];
  for (let round = 0; round < 30 && cluster.running.length > 0; round += 1) {
    expect(cluster.running.length).toBeLessThanOrEqual(3);
    await cluster.tellRunning();
    const [name] = cluster.running;
    await cluster.finish(name!);
    ran.push(name!);
    await again();
    await cluster.tellRunning();
    await again();
    await cluster.clock.runFor(300);
  }
  expect(ran).toEqual(names);
  expect([cluster.scheduler.waiting, cluster.scheduler.reserved]).toEqual([0, 0]);
});

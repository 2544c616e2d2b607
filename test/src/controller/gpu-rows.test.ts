// Rows of agents that arrive twice, late or out of order.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { gpuRowTtlMs, gpuTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import { rowFormat, writeRow } from '@gpuwhisk/common/gpu-rows';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { EmbeddedState } from '@gpuwhisk/common/state/embedded-state';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import type { Reservation } from '@gpuwhisk/gpu/ledger/occupancy';
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
  let logged: JsonObject[];
  beforeEach(async () => {
    clock = new SimulatedClock();
    state = embeddedState(clock);
    logged = [];
    const destination = { write: (line: string) => void logged.push(JSON.parse(line) as JsonObject) };
    table = new GpuTable(state, clock, createLogger({ level: 'error', destination }));
    await clock.runUntil(table.open());
    heard = [];
    table.onRow(({ version }) => heard.push(version));
  });

  const tell = (one: NodeStatus): Promise<void> =>
    clock.runUntil(state.setRow(gpuTable, one.invoker, one as unknown as JsonValue));

  const tellJson = (value: JsonObject): Promise<void> => clock.runUntil(state.setRow(gpuTable, 'invoker0', value));

  test('reads rows of older releases, and of newer ones that say so', async () => {
    const written = writeRow(row(1, 100)) as JsonObject;
    expect(written).toMatchObject({ format: rowFormat, readableFrom: 1 });
    const later = { format: rowFormat + 2, topology: { nvlink: true } };
    await tellJson(written);
    await tellJson(row(2, 200) as unknown as JsonObject);
    await tellJson({ ...(row(3, 300) as unknown as JsonObject), ...later, readableFrom: rowFormat });
    expect(heard).toEqual([1, 2, 3]);
    await tellJson({ ...(row(4, 400) as unknown as JsonObject), ...later, readableFrom: rowFormat + 1 });
    await tellJson({ ...(row(5, 500) as unknown as JsonObject), format: 0 });
    expect(heard).toEqual([1, 2, 3]);
    expect(logged.map(({ reason }) => reason)).toEqual([
      `its format ${rowFormat + 2} takes a reader of format ${rowFormat + 1}, and this release has ${rowFormat}`,
      'its format is 0, and the oldest that is read is 1',
    ]);
    expect(table.unreadNodes).toBe(1);
    await tellJson(row(6, 600) as unknown as JsonObject);
    expect([heard, table.unreadNodes]).toEqual([[1, 2, 3, 6], 0]);
  });

  const resident: Resident = {
    ...{ container: 'c', device: 'GPU-0', memoryMiB: 100, activations: [] },
    share: { shareClass: 10, smRequest: 0.1, smLimit: 0.1, memoryMiB: 100 },
  };
  const whole = (): JsonObject => JSON.parse(JSON.stringify(row(2, 200, [resident]))) as JsonObject;
  const broken: [string, JsonObject][] = [
    ['devices: Invalid input: expected array, received undefined', { devices: undefined as never }],
    ['version: Invalid input: expected number, received null', { version: NaN }],
    [
      'residents.0.share.smLimit: Invalid input: expected number, received null',
      { residents: [{ ...resident, share: { ...resident.share, smLimit: NaN } }] as never },
    ],
    ["invoker: it is 'invoker9'", { invoker: 'invoker9' }],
  ];
  test.each(broken)('refuses a row by the name of its field: %s', async (reason, changes) => {
    await tell(row(1, 100));
    for (let time = 0; time < 2; time += 1) await tellJson({ ...whole(), ...changes });
    expect([heard, table.unreadNodes]).toEqual([[1], 1]);
    expect(logged).toEqual([expect.objectContaining({ invoker: 'invoker0', reason })]);
    // The last good row counts until it is silent.
    expect(table.nodes()).toMatchObject([{ version: 1 }]);
    await clock.runFor(gpuRowTtlMs + 1000);
    expect(table.nodes()).toEqual([]);
    await tellJson(whole());
    expect([heard, table.unreadNodes]).toEqual([[1, 2], 0]);
  });

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
  const cluster = await GpuCluster.start({
    policy: { base: 'exclusive', share: 'filling', place: 'best-fit' },
  });
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

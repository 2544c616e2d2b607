// Impossible needs, devices that disappear and wrong settings, under policy faashare: each task ends, and no queue is
// stuck.
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import { a100, nodeRow } from '../api/gpu-nodes.js';
import { GpuCluster } from './gpu-cluster.js';

const hourMs = 3_600_000;

/** A row with this memory in use on each of its devices. */
function withUse(row: NodeStatus, usedMemoryMiB: number): NodeStatus {
  return { ...row, status: row.status.map((one) => ({ ...one, usedMemoryMiB })) };
}

describe('under policy faashare', () => {
  let cluster: GpuCluster;
  beforeEach(async () => {
    cluster = await GpuCluster.start({ policy: 'faashare' });
    await cluster.tell();
  });

  /**
   * Ends all runs, and sends the agent's rows, until queue and invoker are empty. Returns the names of the runs in
   * order.
   */
  async function drain(): Promise<string[]> {
    const ran: string[] = [];
    for (let round = 0; round < 100 && cluster.scheduler.waiting + cluster.running.length > 0; round++) {
      for (const name of cluster.running) {
        await cluster.finish(name);
        ran.push(name);
      }
      await cluster.tell();
      await cluster.clock.runFor(300);
    }
    expect([cluster.scheduler.waiting, cluster.running]).toEqual([0, []]);
    return ran;
  }

  /** Sets the wall clock forward, or back if `byMs` is negative. */
  function setClock(byMs: number): void {
    const { clock } = cluster;
    const before = clock.now.bind(clock);
    clock.now = () => before() + byMs;
  }

  test('an SLO that cannot be met is best effort, and runs after those that can', async () => {
    await cluster.accept('running');
    await cluster.accept('impossible', { sloMs: 1 });
    await cluster.clock.runFor(300);
    await cluster.accept('possible', { sloMs: 10_000 });
    const [first, second] = cluster.scheduler.queued();
    expect([first?.action, first?.sloMs]).toEqual(['/alice/possible', 10_000]);
    expect([second?.action, second?.sloMs]).toEqual(['/alice/impossible', undefined]);
    expect(await drain()).toEqual(['running', 'possible', 'impossible']);
  });

  test.each([0, -1, 1.5, null, 'much', 1e12])('memory of %p is refused with 400', async (memoryMiB) => {
    const refused = cluster.clock.runUntil(cluster.invoke('odd', { memoryMiB }));
    await expect(refused).rejects.toMatchObject({ status: 400, message: expect.stringContaining("'memoryMiB'") });
    expect(cluster.scheduler.waiting).toBe(0);
  });

  test.each([
    ['memory', nodeRow([a100('GPU-odd', { memoryMiB: NaN })])],
    ['use', withUse(nodeRow([a100('GPU-odd')]), NaN)],
  ])('a node whose row has a %s that is no number gets nothing by that row, and the others serve', async (_, row) => {
    await cluster.tell(row);
    // The last good row counts until it is silent.
    await cluster.accept('a', { memoryMiB: 1000 });
    expect(cluster.arrivals[0]?.message.gpu?.devices).toEqual(['GPU-0']);
    await cluster.finish('a');
    for (let second = 0; second < 7; second += 1) {
      await cluster.tell(row);
      await cluster.clock.runFor(1000);
    }
    await expect(cluster.clock.runUntil(cluster.invoke('b', { memoryMiB: 1000 }))).rejects.toMatchObject({
      status: 503,
    });
    await cluster.tell();
    await cluster.accept('c', { memoryMiB: 1000 });
    expect(await drain()).toEqual(['c']);
  });

  test('a function that nobody has seen run is placed, whatever its SLO', async () => {
    await cluster.accept('new', { memoryMiB: 1000, sloMs: 10 });
    expect(cluster.running).toEqual(['new']);
  });

  test('what waits when its only device vanishes runs once there is one again, each once', async () => {
    await cluster.accept('running');
    const names = Array.from({ length: 20 }, (_, at) => `waiting ${at}`);
    for (const name of names)
      await cluster.accept(name, { memoryMiB: 30_000, sloMs: 5000 + 1000 * names.indexOf(name) });
    await cluster.tell({ devices: [], status: [] });
    await cluster.finish('running');
    await cluster.clock.runFor(2000);
    expect([cluster.scheduler.waiting, cluster.running]).toEqual([20, []]);
    await expect(cluster.clock.runUntil(cluster.invoke('late'))).rejects.toMatchObject({ status: 503 });
    await cluster.tell();
    expect((await drain()).sort()).toEqual([...names].sort());
  });

  test('what waits for a device that never comes back ends after the longest wait, with a record', async () => {
    const id = await cluster.accept('running').then(() => cluster.accept('waiting'));
    await cluster.tell({ devices: [], status: [] });
    await cluster.finish('running');
    await cluster.clock.runFor(601_000);
    expect(cluster.scheduler.waiting).toBe(0);
    const record = await cluster.record(id);
    expect(record?.response.result).toEqual({ error: 'No GPU became free for the action within 600000 ms.' });
  });

  test.each([
    ['forward', 2 * hourMs],
    ['back', -2 * hourMs],
  ])('a clock that is set %s ends no wait, makes nobody late and nobody early', async (_, byMs) => {
    await cluster.accept('running');
    await cluster.accept('strict', { sloMs: 20_000 });
    await cluster.accept('best effort');
    setClock(byMs);
    await cluster.tell();
    await cluster.clock.runFor(1000.4);
    expect(cluster.scheduler.queued()).toMatchObject([
      { action: '/alice/strict', sloMs: 20_000 },
      { action: '/alice/best effort' },
    ]);
    for (const { waitedMs } of cluster.scheduler.queued()) {
      expect(waitedMs).toBeGreaterThanOrEqual(1000);
      expect(Number.isInteger(waitedMs)).toBe(true);
      expect(waitedMs).toBeLessThan(60_000);
    }
    await cluster.accept('after', { sloMs: 5_000 });
    expect(await drain()).toEqual(['running', 'after', 'strict', 'best effort']);
  });
});

// Attempts of one training job on one node, of which an earlier one goes on although it was thought lost.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmdirSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { TrainingRuns } from '@gpuwhisk/invoker/activation/training-runs';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { openCheckpoints, removeCheckpoints } from '@gpuwhisk/invoker/containers/sandbox/checkpoints';
import { canMount, mountSmall, unmountSmall } from '../support/small-disk.js';
import { initialized, run } from './containers/cases.js';
import { hasLauncher, isRoot, openProcessFactory } from './process-harness.js';
import type { ProcessHarness } from './process-harness.js';

const job = '0123456789abcdef';
const training = { job, members: 1, rendezvousMs: 0, checkpointMiB: 16 };
/** Appends its number to a file of the checkpoints, again and again. */
const writes = (attempt: number): string =>
  `setInterval(() => require('fs').appendFileSync('/checkpoints/log', '${attempt}'), 1); await sleep(50); return { begun: true };`;
const reads = `return { log: require('fs').readFileSync('/checkpoints/log', 'utf8') };`;

(hasLauncher && isRoot && canMount ? describe : describe.skip)('attempts of a training job', () => {
  let harness: ProcessHarness;
  beforeAll(async () => {
    harness = await openProcessFactory();
  });
  afterAll(() => harness.close());

  const attempt = (number: number): Promise<Container> =>
    initialized(harness.factory, { training: { ...training, attempt: number } });
  const script = async (container: Container, text: string): Promise<unknown> => {
    const outcome = await run(container, { do: 'script', script: text }).outcome;
    return outcome.type === 'result' && 'value' in outcome.result ? outcome.result.value : outcome;
  };

  test('have the checkpoints one after the other: an earlier one has ended before a later one sees them', async () => {
    const first = await attempt(1);
    expect(await script(first, writes(1))).toEqual({ begun: true });
    const second = await attempt(2);
    const before = await script(second, reads);
    expect(before).toEqual({ log: expect.stringMatching(/^1+$/) });
    await new Promise((done) => setTimeout(done, 50));
    expect(await script(second, reads)).toEqual(before);
    // One that was held up on the way.
    await expect(attempt(1)).rejects.toThrow('cannot be kept: run 2 has begun, and this is run 1.');
    expect(await script(second, writes(2))).toEqual({ begun: true });

    // Also when they begin at once, and after a restart of the invoker.
    const [third, fourth] = await Promise.allSettled([attempt(3), attempt(4)]);
    expect(fourth.status).toBe('fulfilled');
    if (third.status === 'fulfilled') await third.value.exited;
    await harness.factory.close();
    const next = await openProcessFactory({ dataDir: harness.dataDir });
    await expect(initialized(next.factory, { training: { ...training, attempt: 3 } })).rejects.toThrow('run 4 has');
    const fifth = await initialized(next.factory, { training: { ...training, attempt: 5 } });
    expect(await script(fifth, reads)).toEqual({ log: expect.stringMatching(/^1+2+$/) });
    await next.close();
  });

  test('take no more of the disk together than is free, also when they begin at once', async () => {
    const disk = mkdtempSync(join(tmpdir(), 'gpuwhisk-checkpoints-'));
    expect(mountSmall(disk, 1400)).toBe(true);
    try {
      const { bavail, bsize } = statfsSync(disk);
      const spareMiB = (bavail * bsize) / 2 ** 20 - 1024;
      // Beside the image's own tables; two of it have no space.
      const sizeMiB = Math.floor((spareMiB * 0.6 - 30) / 1.07);
      const folders = ['one', 'other'].map((name) => join(disk, name));
      const opened = await Promise.allSettled(folders.map((folder) => openCheckpoints(folder, sizeMiB, 0)));
      expect(opened.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      expect(opened).toContainEqual({
        status: 'rejected',
        reason: expect.objectContaining({ message: expect.stringContaining('less than 1024 MiB left') }),
      });
      for (const folder of folders) await removeCheckpoints(folder);
    } finally {
      unmountSmall(disk);
      rmdirSync(disk);
    }
  });

  test('leave a tenth of a large disk to what is not a job', async () => {
    const disk = mkdtempSync(join(tmpdir(), 'gpuwhisk-checkpoints-'));
    expect(mountSmall(disk, 12_288)).toBe(true);
    try {
      const { bavail, blocks, bsize } = statfsSync(disk);
      const [freeMiB, tenthMiB] = [(bavail * bsize) / 2 ** 20, Math.ceil((blocks * bsize) / 10 / 2 ** 20)];
      const sizeMiB = Math.floor(((freeMiB - (1024 + tenthMiB) / 2 - 24) * 16) / 17);
      await expect(openCheckpoints(join(disk, 'one'), sizeMiB, 0)).rejects.toThrow(`less than ${tenthMiB} MiB left`);
      await removeCheckpoints(join(disk, 'one'));
    } finally {
      unmountSmall(disk);
      rmdirSync(disk);
    }
  });

  test('end when their node has been without the cluster for a minute', async () => {
    const own = await openProcessFactory();
    let [offsetMs, mayBegin] = [0, true];
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + offsetMs };
    const parts = { invoker: 'invoker0', dataDir: own.dataDir, state: embeddedState(clock), clock };
    const logger = createLogger({ level: 'fatal' });
    const runs = new TrainingRuns({ ...parts, logger, mayBegin: () => mayBegin });
    await runs.open();
    const container = await initialized(own.factory);
    const message = { activationId: 'a' } as ActivationMessage;
    const order = { job, attempt: 1, gpus: 1, members: 1, limitMs: 60_000, rendezvousMs: 0 };
    const watched = runs.watch(order, message, container);
    const call = run(container, { do: 'script', script: 'await sleep(60000)' });
    mayBegin = false;
    await new Promise((done) => setTimeout(done, 1200));
    offsetMs = 50_000;
    await new Promise((done) => setTimeout(done, 1200));
    expect(watched.response).toBeUndefined();
    offsetMs = 60_000;
    expect(await call.outcome).toMatchObject({ type: 'lost' });
    await container.exited;
    expect(watched.response?.result).toEqual({
      error: 'The invoker lost touch with the cluster while the action ran.',
    });
    await runs.close();
    await own.close();
  });
});

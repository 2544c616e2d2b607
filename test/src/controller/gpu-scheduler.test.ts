import { beforeEach, describe, expect, test } from '@jest/globals';
import { activationDocument } from '@gpuwhisk/common/entities/activation';
import { a100, nodeRow } from '../api/gpu-nodes.js';
import { actionNamed, GpuCluster, identity } from './gpu-cluster.js';

describe('the GPU scheduler', () => {
  let cluster: GpuCluster;
  beforeEach(async () => {
    cluster = await GpuCluster.start();
    await cluster.tell();
  });

  test('sends an activation to the node that has a device for it, with all that the node needs to know', async () => {
    await cluster.accept('a', { memoryMiB: 1000, mpsPercent: 25, sloMs: 500, sample: {} });
    const { gpu, gpuNeed } = cluster.arrivals[0]?.message ?? {};
    expect(gpu).toMatchObject({ invoker: 'invoker0', devices: ['GPU-0'], epoch: 5, version: 1 });
    expect(gpu?.share).toEqual({
      ...{ shareClass: 30, smRequest: 0.25, smLimit: 0.25, memoryMiB: 1000 },
      tokens: { violation: 0.2 },
    });
    expect(gpuNeed).toMatchObject({ memoryMiB: 1000, sloMs: 500, timeoutMs: 60_000, isolation: 'namespace' });
    expect(gpuNeed).not.toHaveProperty('sample');
  });

  test('tells of an instance from its launch on, and of those that agents show on a controller that does not lead', async () => {
    const started = { identity, payload: {}, blocking: false, waitMs: 60_000, transactionId: 'tid', launch: {} };
    await cluster.clock.runUntil(
      cluster.dispatcher.invoke({ ...started, action: actionNamed('a', { memoryMiB: 1000 }) }),
    );
    const seen = (): unknown[] => cluster.scheduler.instances().map(({ state, gpus }) => [state, ...gpus]);
    expect(seen()).toEqual([['loading', 'GPU-0']]);
    await cluster.tellRunning();
    expect(seen()).toEqual([['loading', 'GPU-0']]);
    const [resident] = cluster.residents();
    await cluster.finish('a');
    expect(seen()).toEqual([['idle', 'GPU-0']]);
    await cluster.tell({ residents: [{ ...resident!, activations: [] }] });
    cluster.lease.epoch = undefined;
    expect(seen()).toEqual([['idle', 'GPU-0']]);
    await cluster.tell({ residents: [{ ...resident!, activations: ['x'] }] });
    expect(seen()).toEqual([['running', 'GPU-0']]);
  });

  test('gives memory out once, also before the agent shows it', async () => {
    await cluster.accept('a', { memoryMiB: 20_000 });
    await cluster.accept('b', { memoryMiB: 18_000 });
    await cluster.accept('c', { memoryMiB: 1 });
    expect(cluster.running).toEqual(['a', 'b']);
    await cluster.tell();
    await cluster.tellRunning();
    expect([cluster.running, cluster.scheduler.waiting]).toEqual([['a', 'b'], 1]);
    await cluster.finish('b');
    await cluster.tellRunning();
    expect(cluster.running).toEqual(['a', 'c']);
  });

  test('places those who wait by deadline, best effort having 30 s, and nobody behind their backs', async () => {
    await cluster.accept('first');
    await cluster.accept('best effort');
    await cluster.accept('lax', { sloMs: 60_000 });
    await cluster.accept('strict', { sloMs: 10_000 });
    for (const next of ['strict', 'best effort', 'lax']) {
      await cluster.finish(cluster.running[0] ?? '');
      await cluster.tell();
      expect(cluster.running).toEqual([next]);
    }
    await cluster.finish('lax');
    await cluster.tell();
    await cluster.accept('first');
    await cluster.accept('large');
    await cluster.accept('small', { memoryMiB: 1 });
    expect(cluster.running).toEqual(['first']);
  });

  test('requests of a batch are sent on for as long as the next batch gathers', async () => {
    for (let count = 0; count < 5; count++) await cluster.accept('batched', { batch: 2 });
    expect(cluster.arrivals.map(({ message }) => message.gpu?.joins ?? false)).toEqual([false, true, true, true]);
    await cluster.tellRunning(1);
    expect([cluster.running.length, cluster.scheduler.waiting]).toEqual([4, 1]);
    await cluster.finish('batched');
    await cluster.tell();
    expect([cluster.running.length, cluster.scheduler.waiting]).toEqual([4, 0]);
  });

  test('small ones pass a large one that has to wait, until it has waited for long', async () => {
    await cluster.accept('half', { memoryMiB: 19_000 });
    await cluster.accept('large');
    await cluster.accept('small', { memoryMiB: 1000 });
    await cluster.tellRunning();
    expect(cluster.running).toEqual(['half', 'small']);
    for (let seconds = 0; seconds < 30; seconds++) {
      await cluster.tellRunning();
      await cluster.clock.runFor(1000);
    }
    await cluster.accept('late', { memoryMiB: 1000 });
    await cluster.tellRunning();
    expect(cluster.running).toEqual(['half', 'small']);
    await cluster.finish('half');
    await cluster.finish('small');
    await cluster.tell();
    expect(cluster.running).toEqual(['large']);
  });

  test('no GPU at all, none that is large enough, and no right to decide are told at once', async () => {
    await expect(cluster.invoke('a', { memoryMiB: 38_001 })).rejects.toMatchObject({
      status: 503,
      message:
        "The action needs a GPU that is not there: 'memoryMiB' is 38001, and the largest device, NVIDIA A100-SXM4-40GB, can give 38000.",
    });
    await cluster.tell({ devices: ['GPU-0', 'GPU-1'].map((uuid) => a100(uuid, { memoryMiB: 40_000 })) });
    await expect(cluster.invoke('a', { memoryMiB: 60_000, spans: 2 })).rejects.toMatchObject({
      status: 503,
      message: expect.stringContaining('can give 38000; the policy in force splits no function.'),
    });
    cluster.lease.epoch = undefined;
    await expect(cluster.invoke('a')).rejects.toMatchObject({ status: 503 });
    cluster.lease.epoch = 6;
    await cluster.tell({ devices: [] });
    await expect(cluster.invoke('a')).rejects.toMatchObject({ status: 503, message: /no invoker has one/ });
    await cluster.tell();
    await cluster.clock.runFor(5501);
    await expect(cluster.invoke('a')).rejects.toMatchObject({ status: 503, message: /no invoker has one/ });
    expect(cluster.running).toEqual([]);
  });

  test('a placement that is given back is decided again on news of the node, and fails after the third time', async () => {
    const id = await cluster.accept('a');
    for (const version of [2, 3, 4]) {
      await cluster.giveBack('a', 'the memory is taken');
      await cluster.clock.runFor(1000);
      expect([cluster.running, cluster.scheduler.waiting]).toEqual([[], 1]);
      await cluster.tell();
      expect(cluster.arrivals[0]?.message.gpu).toMatchObject({ version });
    }
    expect(cluster.arrivals[0]?.message.gpuRefusals).toEqual(Array(3).fill('the memory is taken'));
    expect(await cluster.record(id)).toBeUndefined();
    await cluster.giveBack('a', 'the memory is still taken');
    expect((await cluster.record(id))?.response).toEqual({
      statusCode: 3,
      result: { error: 'The action was placed 4 times, and no GPU took it: the memory is still taken.' },
    });
    expect(cluster.scheduler.waiting).toBe(0);
  });

  test('what one gave back another may have at once', async () => {
    await cluster.accept('a');
    await cluster.accept('b');
    await cluster.giveBack('a', 'its share has a minimum');
    expect([cluster.running, cluster.scheduler.waiting]).toEqual([['b'], 1]);
    expect(cluster.scheduler.decisions().map(({ reason }) => reason)).toEqual([
      'placed: least given away there',
      'its agent refused: its share has a minimum',
      'it waits',
      'placed: least given away there',
    ]);
  });

  test('a copy of what runs or has ended comes to nothing; what its invoker had before it was started again is placed', async () => {
    await cluster.accept('a');
    const [{ message } = { message: undefined }] = cluster.arrivals;
    if (message === undefined) throw new Error('it was not placed');
    const { gpu, ...unplaced } = message;
    const older = { ...message, gpu: { ...message.gpu!, epoch: 4 } };
    for (const copy of [unplaced, older]) await cluster.leave(copy);
    expect([cluster.running, cluster.scheduler.waiting]).toEqual([['a'], 0]);
    await cluster.leave(message, true);
    await cluster.tell();
    expect(cluster.running).toEqual(['a', 'a']);
    expect(cluster.arrivals[1]?.message.gpuRefusals).toBeUndefined();
    await cluster.finish('a');
    await cluster.leave(unplaced);
    expect([gpu?.epoch, cluster.scheduler.waiting, cluster.scheduler.reserved]).toEqual([5, 0, 0]);
  });

  test('counts what it decides, and who waits', async () => {
    await cluster.accept('a');
    await cluster.accept('b');
    await cluster.giveBack('a', 'no');
    const text = (await cluster.metrics.render()).toString();
    expect(text).toContain('gpuwhisk_gpu_decisions_total{outcome="placed"} 2');
    expect(text).toContain('gpuwhisk_gpu_decisions_total{outcome="returned"} 1');
    expect(text).toContain('gpuwhisk_gpu_waiting 1');
    expect(text).toContain('gpuwhisk_gpu_queue_seconds_count 2');
  });

  test('an instance that spans devices is launched on its parts of them', async () => {
    const other = await GpuCluster.start({ policy: 'dilu' });
    await other.tell(nodeRow(['GPU-0', 'GPU-1'].map((uuid) => a100(uuid, { memoryMiB: 40_000 }))));
    const action = actionNamed('large', { memoryMiB: 60_000, spans: 2 });
    const launch = { identity, action, payload: {}, blocking: false, waitMs: 0, transactionId: 'tid', launch: {} };
    await other.clock.runUntil(other.dispatcher.invoke(launch));
    const placed = { devices: ['GPU-0', 'GPU-1'], partsMiB: [38_000, 22_000], share: { memoryMiB: 38_000 } };
    expect(other.arrivals.map(({ message }) => message.gpu)).toMatchObject([placed]);
    // Nothing is left of the first device for another one.
    await expect(other.clock.runUntil(other.dispatcher.invoke(launch))).rejects.toMatchObject({ status: 503 });
  });

  test('every decision is kept with what it rejected', async () => {
    await cluster.tell({ devices: [a100('GPU-0', { memoryMiB: 40_000 }), a100('GPU-1', { memoryMiB: 1000 })] });
    const id = await cluster.accept('a', { memoryMiB: 2000 });
    expect(cluster.scheduler.decisions()).toMatchObject([
      {
        ...{ activationId: id, action: '/alice/a', policy: 'least-loaded', reason: 'placed: least given away there' },
        placement: { devices: ['GPU-0'] },
        rejected: [{ what: 'GPU-1', reason: 'nothing is known of it' }],
      },
    ]);
  });

  test('a caller who waits is answered 503 in place of a record', async () => {
    const answer = cluster.invoke('a', {}, true);
    answer.catch(() => undefined);
    for (let times = 0; times < 4; times++) {
      await cluster.tell();
      await cluster.giveBack('a', 'no');
    }
    await expect(answer).rejects.toMatchObject({ status: 503, message: /placed 4 times/ });
    expect(await cluster.clock.runUntil(cluster.store.list('activations', { limit: 1 }))).toEqual([]);
  });

  test('nobody waits for longer than is allowed', async () => {
    cluster = await GpuCluster.start({ maxWaitMs: 20_000 });
    await cluster.tell();
    await cluster.accept('a');
    const id = await cluster.accept('b');
    await cluster.clock.runFor(19_000);
    expect(await cluster.record(id)).toBeUndefined();
    await cluster.clock.runFor(1500);
    expect((await cluster.record(id))?.response.result).toEqual({
      error: 'No GPU became free for the action within 20000 ms.',
    });
  });

  test('no more wait than may', async () => {
    cluster = await GpuCluster.start({ maxWaiting: 2 });
    await cluster.tell();
    for (const name of ['a', 'b', 'c']) await cluster.accept(name);
    await expect(cluster.clock.runUntil(cluster.invoke('d'))).rejects.toMatchObject({ status: 429 });
    await cluster.finish('a');
    await cluster.tell();
    expect(await cluster.accept('e')).toBeDefined();
  });

  describe('an SLO that is missed', () => {
    const late = async (admission: 'best-effort' | 'refuse', blocking: boolean) => {
      cluster = await GpuCluster.start({ admission });
      await cluster.tell();
      await cluster.accept('a');
      const answer = cluster.invoke('b', { sloMs: 1000 }, blocking);
      answer.catch(() => undefined);
      await cluster.clock.runFor(2000);
      return answer;
    };

    test('makes an activation best effort', async () => {
      await late('best-effort', false);
      await cluster.accept('c', { sloMs: 20_000 });
      for (const next of ['c', 'b']) {
        await cluster.finish(cluster.running[0] ?? '');
        await cluster.tell();
        expect(cluster.running).toEqual([next]);
      }
    });

    test('has it refused where that is configured', async () => {
      await expect(late('refuse', true)).rejects.toMatchObject({
        status: 429,
        message: "No GPU became free within the action's SLO of 1000 ms.",
      });
      const outcome = await late('refuse', false);
      const { activationId } = outcome as { activationId: string };
      expect((await cluster.record(activationId))?.response.statusCode).toBe(3);
    });
  });

  describe('after a crash', () => {
    test('those who waited are placed, once each', async () => {
      await cluster.accept('a');
      await cluster.accept('b', { sloMs: 5000 });
      await cluster.accept('c', { memoryMiB: 100 });
      await cluster.crash();
      await cluster.tell();
      expect(cluster.running.filter((name) => name === 'a')).toHaveLength(1);
      expect(cluster.scheduler.waiting + cluster.running.length).toBe(3);
      for (let times = 0; times < 3; times++) {
        for (const name of [...cluster.running]) await cluster.finish(name);
        await cluster.tell();
      }
      expect([cluster.scheduler.waiting, cluster.running]).toEqual([0, []]);
    });

    test('what was given back is decided again', async () => {
      await cluster.accept('a');
      await cluster.giveBack('a', 'no room');
      await cluster.crash();
      const again = (): unknown[] => cluster.arrivals.filter(({ message }) => message.gpuRefusals?.[0] === 'no room');
      expect(again()).toEqual([]);
      await cluster.clock.runFor(100);
      await cluster.tell();
      expect(again()).toHaveLength(1);
    });

    test('what has a record by then is not placed again', async () => {
      await cluster.accept('a');
      const id = await cluster.accept('b');
      await cluster.clock.runUntil(
        cluster.store.createMany('activations', [
          activationDocument(
            {
              ...{ namespace: 'alice', name: 'b', version: '0.0.1', subject: 'alice', activationId: id },
              ...{ start: 1, end: 2, response: { statusCode: 0 }, logs: [], publish: false, annotations: [] },
            },
            1,
          ),
        ]),
      );
      await cluster.crash();
      await cluster.tell();
      await cluster.clock.runFor(1000);
      expect([cluster.scheduler.waiting, cluster.running]).toEqual([0, ['a']]);
    });
  });
});

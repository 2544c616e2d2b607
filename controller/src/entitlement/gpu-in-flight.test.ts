import { describe, expect, test } from '@jest/globals';
import { configSchema } from '@gpuwhisk/common/config-schema';
import type { Identity, UserLimits } from '@gpuwhisk/common/entities/identity';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import { gpuSpendingCounters } from '@gpuwhisk/common/gpu-nodes';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedState } from '@gpuwhisk/common/testing/simulated-state';
import { sleep, systemClock as clock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { InFlight } from './in-flight.js';

const caller = (limits: UserLimits): Identity => ({
  ...{ subject: 's', namespace: { name: 'ns', uuid: 'u' }, authkey: { api_key: 'u:k' }, rights: [] },
  limits,
});
const need = (memoryMiB: number, gpus = 1): GpuNeed => ({
  ...{ memoryMiB, gpus, class: 'inference', batch: 1, isolation: 'namespace', timeoutMs: 60_000 },
});

/** Two controllers with a common state. */
function controllers(state: ClusterState, system: object = {}): [InFlight, InFlight] {
  const limits = { ...configSchema.parse({}).limits, ...system };
  const make = (): InFlight => {
    const logger = createLogger({ level: 'silent' });
    return new InFlight({ state, limits, clock, metrics: createMetrics(), logger });
  };
  return [make(), make()];
}

const places: [string, () => ClusterState][] = [
  ['in this process', () => embeddedState(clock)],
  ['elsewhere', () => simulatedState(embeddedState(clock), { clock, random: seededRandom(1) })],
];

describe.each(places)('GPU limits of a namespace with the state %s', (_, makeState) => {
  const begin = async (
    inFlight: InFlight,
    id: string,
    limits: UserLimits,
    gpu: GpuNeed | undefined,
    bounded = true,
  ): Promise<void> => inFlight.begin(caller(limits), { activationId: id, timeoutMs: 60_000, bounded, gpu });
  const over = (limit: string, count: number, allowed: number) => ({
    status: 429,
    message: `Too many concurrent GPU requests in flight (count: ${count}, allowed: ${allowed}, limit: ${limit}).`,
  });

  test('are of activations, devices and memory, over all controllers, until completion', async () => {
    const [one, other] = controllers(makeState());
    const own = { concurrentGpuInvocations: 3, concurrentGpus: 4, concurrentGpuMemory: 8000 };
    await begin(one, 'a', own, need(1000, 2));
    await expect(begin(other, 'b', own, need(100, 3))).rejects.toMatchObject(over('concurrentGpus', 5, 4));
    await expect(begin(other, 'b', own, need(6001))).rejects.toMatchObject(over('concurrentGpuMemory', 8001, 8000));
    await begin(other, 'b', own, need(1000));
    await begin(other, 'c', own, need(1000));
    await expect(begin(one, 'd', own, need(1))).rejects.toMatchObject(over('concurrentGpuInvocations', 4, 3));
    one.end('a');
    // On a remote state a hold ends a little later.
    let isIn = false;
    for (let tries = 0; tries < 200 && !isIn; tries++) {
      isIn = await begin(one, 'd', own, need(1)).then(
        () => true,
        () => sleep(clock, 10).then(() => false),
      );
    }
    expect(isIn).toBe(true);
  });

  test('are not of activations without a GPU, and not for parts of sequences, which count all the same', async () => {
    const [one] = controllers(makeState());
    const own = { concurrentGpuInvocations: 1 };
    await begin(one, 'a', own, need(1));
    await begin(one, 'plain', own, undefined);
    await begin(one, 'part', own, need(1), false);
    await expect(begin(one, 'b', own, need(1))).rejects.toMatchObject(over('concurrentGpuInvocations', 3, 1));
  });

  test('are of the time that its functions have had GPUs in the minute, too', async () => {
    const state = makeState();
    const [one, other] = controllers(state, { gpuSecondsPerMinute: 5 });
    const spend = (ms: number): Promise<number> => Promise.resolve(gpuSpendingCounters(state).add('ns', ms));
    // The limit counts calendar minutes, so that the test must run within one.
    if (60_000 - (clock.now() % 60_000) < 5000) await sleep(clock, 5000);
    await spend(4999);
    await begin(one, 'a', {}, need(1));
    await spend(1001);
    const tooMany = { status: 429, message: 'Too many GPU seconds in the last minute (count: 6, allowed: 5).' };
    await expect(begin(other, 'b', {}, need(1))).rejects.toMatchObject(tooMany);
    await begin(other, 'plain', {}, undefined);
    await begin(other, 'part', {}, need(1), false);
    await begin(other, 'c', { gpuSecondsPerMinute: 7 }, need(1));
  });

  test('come from the configuration where the namespace has none of its own, else there are none', async () => {
    const [free] = controllers(makeState());
    for (let count = 0; count < 20; count++) await begin(free, `${count}`, {}, need(100_000, 16));
    const [bound] = controllers(makeState(), { concurrentGpuMemoryMiB: 1000 });
    await expect(begin(bound, 'a', {}, need(1001))).rejects.toMatchObject(over('concurrentGpuMemory', 1001, 1000));
    await begin(bound, 'a', { concurrentGpuMemory: 2000 }, need(1001));
  });
});

import type { BusFaults } from '@gpuwhisk/common/testing/simulated-bus';
import { defaultBusFaults } from '@gpuwhisk/common/testing/simulated-bus';
import type { RecordExpiryTimes } from '@gpuwhisk/common/activations/record-expiry';
import type { Random } from '@gpuwhisk/common/system/random';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { GpuBounds } from './simulated-gpus.js';
import type { PlatformSize } from './simulated-platform.js';
import { kind } from './workload.js';

/** Kinds of faults. */
export type Fault = 'crash' | 'stop' | 'store' | 'disk' | 'container' | 'clock' | 'flip' | 'device' | 'lease';

/** Parameters of one history. Shares are fractions of its events. */
export interface Plan {
  events: number;
  meanGapMs: number;
  burstShare: number;
  longestBurst: number;
  updateShare: number;
  faultShare: number;
  faults: readonly Fault[];
  /** Share of container starts that fail. */
  failingStarts: number;
  diskLatencyMs: number;
  /** How long the machine is down after a crash, ms. */
  downMs: number;
  busFaults: BusFaults | undefined;
  size: PlatformSize;
  /** Times of the records' expiry; undefined if they do not expire. */
  expiry: RecordExpiryTimes | undefined;
  /** Number of the machine's GPUs. */
  gpus: number;
  gpuBounds: GpuBounds;
}

/** Draws a plan: each history has some kinds of faults, and few histories have all. */
export function choosePlan(random: Random): Plan {
  const oneOf = <Item>(...items: Item[]): Item => items[random.uint32() % items.length] as Item;
  const sometimes = (...faults: Fault[]): Fault[] => faults.filter(() => oneOf(true, false));
  const faults: Fault[] = oneOf<Fault[]>([], ['crash'], ['crash', 'crash', ...sometimes('stop')]);
  faults.push(...sometimes('store', 'container', 'clock'));
  if (oneOf(true, false, false, false)) faults.push('disk');
  if (oneOf(true, false, false, false, false, false)) faults.push('flip');
  const gpus = oneOf(0, 0, 0, 1, 2);
  if (gpus > 0) faults.push(...sometimes('device', 'lease'));
  const events = oneOf(20, 40, 60, 150);
  // A wall clock that is set changes the apparent age of records.
  const expires = events >= 40 && !faults.includes('clock');
  const stemCell = { spec: bareSpec(kind, 128), initialCount: oneOf(1, 2) };
  return {
    events,
    expiry: expires ? { ttlMs: 60_000, firstMs: 2000, everyMs: 5000 } : undefined,
    meanGapMs: oneOf(5, 30, 150),
    burstShare: oneOf(0, 0.1, 0.3),
    longestBurst: oneOf(3, 12),
    updateShare: oneOf(0, 0.05, 0.2),
    faultShare: faults.length === 0 ? 0 : oneOf(0.05, 0.15, 0.3),
    faults,
    failingStarts: oneOf(0, 0, 0, 0.1),
    diskLatencyMs: oneOf(0.5, 1, 2),
    downMs: oneOf(0, 0, 1000),
    busFaults: oneOf(undefined, undefined, defaultBusFaults, { ...defaultBusFaults, doubleShare: 0.5 }),
    gpus,
    gpuBounds: {
      policy: oneOf('least-loaded', 'faashare'),
      maxWaiting: oneOf(4, 30, 1000),
      maxWaitMs: oneOf(3000, 30_000),
      admission: oneOf('best-effort', 'refuse'),
    },
    size: {
      pool: {
        memoryMiB: oneOf(384, 640, 1024, 4096),
        maxStarting: oneOf(1, 2, 8),
        pauseGraceMs: oneOf(200, 10_000),
        idleContainerMs: oneOf(2000, 600_000),
        stemCells: oneOf([], [stemCell]),
        stemCellsOnDemand: oneOf(true, false),
      },
      maxInFlight: oneOf(3, 10, 2000),
      maxPendingMessages: oneOf(8, 30, 10_000, 10_000),
      segmentBytes: oneOf(4000, 16_000, 16_000_000),
      maxLogBytes: oneOf(12_000, 128_000_000),
    },
  };
}

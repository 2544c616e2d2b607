import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { StoreWriteError } from '@gpuwhisk/common/store/artifact-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';

/** States of a store. */
export type StoreState = 'well' | 'slow' | 'failing';

/** Longest delay of a slow store, ms. */
const slowMs = 1500;

/** `inner` with the behaviour of `state()`: slow, or failing (some failed writes have taken effect). */
export function troubledStore(
  inner: ArtifactStore,
  { state, clock, random }: { state: () => StoreState; clock: Clock; random: Random },
): ArtifactStore {
  async function through<Result>(operation: () => Promise<Result>, writes = false): Promise<Result> {
    const now = state();
    if (now === 'slow') await sleep(clock, randomFraction(random) * slowMs);
    if (now === 'failing') {
      if (writes && randomFraction(random) < 0.3) await operation();
      else await sleep(clock, 1);
      throw new StoreWriteError('the store fails');
    }
    return operation();
  }
  return {
    get: (database, id, mostBytes) => through(() => inner.get(database, id, mostBytes)),
    put: (database, document, attachments) => through(() => inner.put(database, document, attachments), true),
    createMany: (database, documents) => through(() => inner.createMany(database, documents), true),
    delete: (database, id, revision) => through(() => inner.delete(database, id, revision), true),
    list: (database, options) => through(() => inner.list(database, options)),
    query: (database, query) => through(() => inner.query(database, query)),
    async *texts(database, query) {
      for await (const texts of inner.texts(database, query)) yield await through(() => Promise.resolve(texts));
    },
    text: (database, id, as, reader) => through(() => inner.text(database, id, as, reader)),
    count: (database, query) => through(() => inner.count(database, query)),
    async *expire(beforeMs) {
      for await (const removed of inner.expire(beforeMs)) yield await through(() => Promise.resolve(removed));
    },
    getAttachment: (database, id, name) => through(() => inner.getAttachment(database, id, name)),
    storedBytes: (namespace) => inner.storedBytes(namespace),
    storedNamespaces: () => inner.storedNamespaces(),
    close: () => inner.close(),
  };
}

/** A clock whose wall time can be set. */
export interface SteppedClock extends Clock {
  /** Moves the wall clock; timers and monotonic time go on as before. */
  stepWall(byMs: number): void;
}

/** `inner` with a wall clock that can be set. */
export function steppedClock(inner: Clock): SteppedClock {
  let skewMs = 0;
  return {
    now: () => inner.now() + skewMs,
    monotonicMs: () => inner.monotonicMs(),
    setTimer: (delayMs, run) => inner.setTimer(delayMs, run),
    setBackgroundTimer: (delayMs, run) => inner.setBackgroundTimer(delayMs, run),
    defer: (run) => inner.defer(run),
    stepWall: (byMs) => {
      skewMs += byMs;
    },
  };
}

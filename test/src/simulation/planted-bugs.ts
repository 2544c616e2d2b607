import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { DeviceStatus } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { StartJournal } from '@gpuwhisk/invoker/activation/invoker-context';
import type { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { busLike, storeLike } from './delegates.js';
import type { SimulatedGpus } from './simulated-gpus.js';

/** A bug, made by wrapping one of the platform's parts. */
export interface PlantedBug {
  bus?: (bus: MessageBus) => MessageBus;
  marks?: (marks: StartJournal) => StartJournal;
  store?: (store: ArtifactStore) => ArtifactStore;
  /** Changes the agent's answers and its input. */
  desk?: (desk: SimulatedGpus['agent']) => SimulatedGpus['agent'];
  /** Changes the nodes' rows that the scheduler gets. */
  table?: (table: GpuTable) => GpuTable;
  /** Changes the clock of the containers' time limits. */
  containerClock?: (clock: Clock) => Clock;
}

/** An occasional bug occurs once in this many chances. */
const nowAndThen = 10;
/** Shortest timer that can be a time limit, ms. */
const timeLimitMs = 100;

function everyNth(): () => boolean {
  let count = 0;
  return () => ++count % nowAndThen === 0;
}

/** Bugs that the simulation must find; a simulation that misses one is worthless. */
export const plantedBugs: Record<string, PlantedBug> = {
  /** A caller is told 202 before the message is on disk. */
  'acknowledge-before-sync': {
    bus: (bus) =>
      busLike(bus, {
        send(topic, message) {
          bus.send(topic, message);
          return { synced: () => Promise.resolve() };
        },
      }),
  },

  /** After a restart no mark tells which activations were started. */
  'run-on-redelivery': {
    marks: (marks) => ({ mark: (id) => marks.mark(id), startedBefore: () => false }),
  },

  /** Some time limits never expire. */
  'lost-time-out': {
    containerClock: (clock) => {
      const isLost = everyNth();
      return {
        now: () => clock.now(),
        monotonicMs: () => clock.monotonicMs(),
        setBackgroundTimer: (delayMs, run) => clock.setBackgroundTimer(delayMs, run),
        defer: (run) => clock.defer(run),
        setTimer: (delayMs, run) =>
          delayMs >= timeLimitMs && isLost() ? { cancel: () => undefined } : clock.setTimer(delayMs, run),
      };
    },
  },

  /** Some activations end a second time, with another status. */
  'double-completion': {
    store: (store) => {
      const isDoubled = everyNth();
      return storeLike(store, {
        async createMany(database, documents) {
          const created = await store.createMany(database, documents);
          const [first] = documents;
          if (first !== undefined && isDoubled()) {
            const { _rev } = await store.get(database, first._id);
            await store.put(database, { ...first, ...(_rev !== undefined && { _rev }), response: { statusCode: 3 } });
          }
          return created;
        },
      });
    },
  },

  /** Records expire before their time. */
  'early-expiry': {
    store: (store) => storeLike(store, { expire: (beforeMs) => store.expire(beforeMs + 20_000) }),
  },

  /** Some results are acknowledged twice, the first time wrongly. */
  'double-acknowledgement': {
    bus: (bus) => {
      const isDoubled = everyNth();
      return busLike(bus, {
        send(topic, message) {
          const { response } = message;
          if (topic.startsWith('completed') && response !== undefined && isDoubled()) {
            bus.send(topic, { ...message, response: { ...(response as JsonObject), response: { statusCode: 0 } } });
          }
          return bus.send(topic, message);
        },
      });
    },
  },

  /** The memory that some activations reserved on a device is never free again. */
  'kept-promise': {
    desk: (desk) => {
      const isForgotten = everyNth();
      return { ...desk, ended: (user) => (isForgotten() ? undefined : desk.ended(user)) };
    },
  },

  /** Some activations that must wait for a GPU are lost. */
  'forgotten-waiter': {
    bus: (bus) => {
      const isForgotten = everyNth();
      return busLike(bus, {
        subscribe: (topic, group, options, take) =>
          bus.subscribe(topic, group, options, (delivery) => {
            if (topic !== 'gpu0' || !isForgotten()) take(delivery);
          }),
      });
    },
  },

  /** After a while the scheduler uses an old row, in which a node's devices are out of use. */
  'old-row': {
    table: (table) => {
      let rows = 0;
      const old = (one: DeviceStatus): DeviceStatus => ({ ...one, health: { state: 'cordoned', reasons: [] } });
      const onRow: GpuTable['onRow'] = (listener) =>
        table.onRow((node) => listener(++rows < 20 ? node : { ...node, status: node.status.map(old) }));
      return Object.create(table, { onRow: { value: onRow } }) as GpuTable;
    },
  },

  /** An agent accepts placements of the previous leader. */
  'stale-epoch': {
    desk: (desk) => ({ ...desk, admit: (placement, user) => desk.admit({ ...placement, epoch: Infinity }, user) }),
  },

  /** A device's memory is reused as soon as a container is told to end. */
  'early-release': {
    desk: (desk) => {
      const { ledger } = desk;
      const generous: typeof ledger = Object.create(ledger, {
        missingMiB: { value: () => 0 },
        claim: { value: () => true },
      }) as typeof ledger;
      return { ...desk, ledger: generous };
    },
  },
};

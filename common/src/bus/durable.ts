import type { Clock } from '../system/clock.js';
import type { Disk } from '../system/disk.js';
import type { Random } from '../system/random.js';
import type { JsonObject } from '../json.js';
import type { AppendLog, LogDamage } from './append-log.js';
import { EmbeddedBus } from './embedded-bus.js';
import { openAppendLog } from './file-log.js';
import type { MessageBus } from './message-bus.js';
import { StartMarks, markStream } from './start-marks.js';

/** What a durable bus is opened with. */
export interface DurableOptions {
  disk: Disk;
  /** Absolute path of a folder of its own. */
  folder: string;
  clock: Clock;
  random: Random;
  /** What a start mark calls a message; undefined if the message never has one. Default: its activationId. */
  markIdOf?: (message: JsonObject) => string | undefined;
  /** Told of what did not work and loses nothing. */
  onWarning?: (warning: Error) => void;
  /** As AppendLogOptions has it. */
  segmentBytes?: number;
  /** As EmbeddedBusOptions has it. */
  maxLogBytes?: number;
  /** As EmbeddedBusOptions has it. */
  releaseEvery?: number;
}

/** What one append log keeps: messages, and which of them work was begun on. */
export interface Durable {
  bus: MessageBus;
  marks: StartMarks;
  log: AppendLog;
  /** What could not be read at opening. */
  damage: LogDamage[];
  /** Closes the bus, then the log. */
  close(): Promise<void>;
}

/** Opens the log in `folder` with the bus and the start marks that live in it. */
export async function openDurable(options: DurableOptions): Promise<Durable> {
  const markIdOf = options.markIdOf ?? activationIdOf;
  const withMarkId = (message: JsonObject, use: (id: string) => void): void => {
    const id = markIdOf(message);
    if (id !== undefined) use(id);
  };
  const marks = new StartMarks();
  const bus = new EmbeddedBus({
    ...options,
    onDone: (message) => withMarkId(message, (id) => marks.forget(id)),
    onCarry: (message) => withMarkId(message, (id) => marks.carry(id)),
  });
  const { log, damage } = await openAppendLog({
    ...options,
    onEntry: (entry) => {
      if (!bus.restore(entry) && entry.stream === markStream) marks.restore(entry);
    },
  });
  bus.open(log);
  marks.open(log, () => new Set(Array.from(bus.unfinished(), markIdOf)));
  return {
    bus,
    marks,
    log,
    damage,
    close: async () => {
      try {
        await bus.close();
      } finally {
        await log.close();
      }
    },
  };
}

function activationIdOf(message: JsonObject): string | undefined {
  return typeof message.activationId === 'string' ? message.activationId : undefined;
}

// The durable bus of one machine, and the start journals: notes that work on a message began.
import type { Clock } from '../system/clock.js';
import type { Disk } from '../system/disk.js';
import type { Random } from '../system/random.js';
import type { JsonObject } from '../json.js';
import type { AppendLog, LogDamage, LogEntry } from './append-log.js';
import { EmbeddedBus } from './embedded-bus.js';
import { openAppendLog } from './file-log.js';
import type { MessageBus, Delivery } from './message-bus.js';
import { ShortLivedMap } from '../short-lived-map.js';

/** What a durable bus is opened with. */
interface DurableOptions {
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
  marks: StartJournal;
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
  const marks = new StartJournal();
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

/** The log stream that start marks are in. */
const markStream = 'marks';
/**
 * Entries of each mark, written in one group. Damage to the last entry of a log looks like a torn tail: a single entry lost
 * there would permit a second run.
 */
const markCopies = 2;

/**
 * Durable notes that work on a message began, in the log that holds the messages. A note lasts at least as long as
 * the message it belongs to: it lies behind it in the log, and is carried forward with it.
 */
export class StartJournal {
  /** Marks of messages that are not done. */
  private readonly current = new ShortLivedMap<string, true>();
  /** Readable entries of earlier processes' marks, by id. */
  private readonly earlier = new Map<string, number>();
  private log: AppendLog | undefined;

  /** Takes an entry of an earlier process. */
  restore(entry: LogEntry): void {
    const id = Buffer.from(entry.payload).toString('utf8');
    this.current.set(id, true);
    this.earlier.set(id, (this.earlier.get(id) ?? 0) + 1);
  }

  /** Starts writing to `log`. Of the earlier marks, those of unfinished messages are kept, and written again if a copy is lost. */
  open(log: AppendLog, unfinishedIds: () => ReadonlySet<string | undefined>): void {
    this.log = log;
    if (this.earlier.size === 0) return;
    const ids = unfinishedIds();
    for (const [id, copies] of this.earlier) {
      if (!ids.has(id)) this.forget(id);
      else if (copies < markCopies) this.mark(id);
    }
  }

  /** Notes that work on `id` starts now; the function returned waits until the note would survive a power loss. */
  mark(id: string): () => Promise<void> {
    const log = this.log;
    if (!log) throw new Error('the log is not open');
    let position = 0;
    for (let copy = 0; copy < markCopies; copy++) position = log.append(markStream, id);
    this.current.set(id, true);
    return () => log.synced(position);
  }

  /** Whether an earlier process started work on `id`, whose message is not done. */
  startedBefore(id: string): boolean {
    return this.earlier.has(id);
  }

  /** The message of `id` is done. */
  forget(id: string): void {
    this.current.delete(id);
    this.earlier.delete(id);
  }

  /** The message of `id` was appended again: its mark must lie behind it. */
  carry(id: string): void {
    if (this.current.has(id)) this.mark(id);
  }
}

/** What start marks of this machine are opened with. */
interface LocalStartJournalOptions {
  disk: Disk;
  /** Absolute path of a folder of its own. */
  folder: string;
  clock: Clock;
  random: Random;
  /** A message may come again for so long after it was sent; marks that are older are forgotten at opening. */
  keepMs: number;
  /** Told of what did not work and loses nothing. */
  onWarning?: (warning: Error) => void;
}

const topic = 'marks';

/** Durable notes, on this machine, that work on messages began that are kept elsewhere. */
export class LocalStartJournal {
  /** Marks that are held, by id: ending them forgets them. */
  private readonly held = new ShortLivedMap<string, Delivery[]>();
  private readonly earlier = new Set<string>();

  private constructor(
    private readonly durable: Awaited<ReturnType<typeof openDurable>>,
    private readonly clock: Clock,
  ) {}

  /** Opens the log in the folder, with the marks of earlier processes. */
  static async open(options: LocalStartJournalOptions): Promise<LocalStartJournal> {
    const { clock, keepMs } = options;
    const durable = await openDurable({ ...options, markIdOf: () => undefined });
    const marks = new LocalStartJournal(durable, clock);
    const { bus } = durable;
    await bus.ensureTopic(topic, { durable: true, maxPendingMessages: Infinity, maxPendingBytes: Infinity });
    let left = bus.lag(topic, topic);
    const oldestMs = clock.now() - keepMs;
    await new Promise<void>((resolve, reject) => {
      const take = (delivery: Delivery): void => {
        marks.take(delivery, oldestMs);
        if (--left === 0) resolve();
      };
      bus.subscribe(topic, topic, { maxInFlight: Infinity }, take).catch(reject);
      if (left === 0) resolve();
    });
    marks.writeLostCopies();
    return marks;
  }

  /** Notes that work on `id` starts now; the function returned waits until the note would survive a power loss. */
  mark(id: string): () => Promise<void> {
    const message = { id, atMs: this.clock.now() };
    let receipt = this.durable.bus.send(topic, message);
    for (let copy = 1; copy < markCopies; copy++) receipt = this.durable.bus.send(topic, message);
    return () => receipt.synced();
  }

  /** Whether an earlier process started work on `id`, whose message is not done. */
  startedBefore(id: string): boolean {
    return this.earlier.has(id);
  }

  /** The message of `id` is done. */
  forget(id: string): void {
    this.earlier.delete(id);
    for (const delivery of this.held.get(id) ?? []) delivery.done();
    this.held.delete(id);
  }

  close(): Promise<void> {
    return this.durable.close();
  }

  /** Completes earlier marks of which damage left fewer entries than are written. */
  private writeLostCopies(): void {
    for (const id of this.earlier) {
      const copies = this.held.get(id) ?? [];
      const [first] = copies;
      if (first && copies.length < markCopies) this.durable.bus.send(topic, first.message);
    }
  }

  private take(delivery: Delivery, oldestMs: number): void {
    const { id, atMs } = delivery.message as { id: string; atMs: number };
    if (delivery.redelivered) {
      if (atMs < oldestMs) {
        delivery.done();
        return;
      }
      this.earlier.add(id);
    }
    const held = this.held.get(id);
    if (held) held.push(delivery);
    else this.held.set(id, [delivery]);
  }
}

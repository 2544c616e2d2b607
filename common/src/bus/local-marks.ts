import { ShortLivedMap } from '../short-lived-map.js';
import type { Clock } from '../system/clock.js';
import type { Disk } from '../system/disk.js';
import type { Random } from '../system/random.js';
import { openDurable } from './durable.js';
import type { Delivery } from './message-bus.js';

/** What start marks of this machine are opened with. */
export interface LocalMarksOptions {
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
export class LocalMarks {
  /** Marks that are held, by id: ending them forgets them. */
  private readonly held = new ShortLivedMap<string, Delivery[]>();
  private readonly earlier = new Set<string>();

  private constructor(
    private readonly durable: Awaited<ReturnType<typeof openDurable>>,
    private readonly clock: Clock,
  ) {}

  /** Opens the log in the folder, with the marks of earlier lives. */
  static async open(options: LocalMarksOptions): Promise<LocalMarks> {
    const { clock, keepMs } = options;
    const durable = await openDurable({ ...options, markIdOf: () => undefined });
    const marks = new LocalMarks(durable, clock);
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
    return marks;
  }

  /** Notes that work on `id` starts now; the function returned waits until the note would survive a power loss. */
  mark(id: string): () => Promise<void> {
    const receipt = this.durable.bus.send(topic, { id, atMs: this.clock.now() });
    return () => receipt.synced();
  }

  /** Whether an earlier life started work on `id`, whose message is not done. */
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

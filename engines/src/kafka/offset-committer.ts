import type { JsonObject } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { backoffMs } from './backoff.js';
import type { GroupProgress } from './group-progress.js';
import type { KafkaLink } from './kafka-link.js';
import { commit } from './topic-offsets.js';

/** What is done is committed at most this much later, ms, where brokers answer. */
const commitDelayMs = 20;

export interface OffsetCommitterOptions {
  /** With its prefix. */
  topic: string;
  group: string;
  link: KafkaLink;
  progress: GroupProgress;
  clock: Clock;
  random: Random;
  /** That a message is done is committed. */
  onCommitted: (message: JsonObject) => void;
  /** Committing fails, and is tried again. */
  onTrouble: (error: Error) => void;
}

/** Commits what a group has done, soon and not each message by itself. */
export class OffsetCommitter {
  private timer: Timer | undefined;
  private current: Promise<void> | undefined;
  private dirty = false;
  /** Done since the last commit. */
  private done: JsonObject[] = [];
  private closed = false;

  constructor(private readonly options: OffsetCommitterOptions) {}

  /** Something is done: `message`, or what was not delivered. */
  note(message: JsonObject | undefined): void {
    this.dirty = true;
    if (message) this.done.push(message);
    if (this.closed || this.timer || this.current) return;
    this.timer = this.options.clock.setTimer(commitDelayMs, () => {
      this.timer = undefined;
      this.current = this.run();
    });
  }

  /** Commits what is done, with one try. Rejects where that fails: it comes again. */
  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.current;
    if (this.dirty) await this.commit();
  }

  private async run(): Promise<void> {
    const { clock, random, onTrouble } = this.options;
    for (let failures = 0; this.dirty && !this.closed;) {
      try {
        await this.commit();
        failures = 0;
        // What becomes done in the meantime is one commit.
        if (this.dirty) await sleep(clock, commitDelayMs);
      } catch (error) {
        onTrouble(error as Error);
        await sleep(clock, backoffMs(failures++, random));
      }
    }
    this.current = undefined;
  }

  private async commit(): Promise<void> {
    const { topic, group, link, progress, onCommitted } = this.options;
    const done = this.done;
    this.done = [];
    this.dirty = false;
    try {
      await commit(link, topic, group, progress.committed());
    } catch (error) {
      this.dirty = true;
      this.done = [...done, ...this.done];
      throw error;
    }
    for (const message of done) onCommitted(message);
  }
}

import type { JsonObject } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { backoffMs } from './pace.js';
import type { CommittedProgress, GroupProgress } from './group-progress.js';
import type { KafkaLink } from './kafka-link.js';
import { commit, fetchCommitted } from './topic-offsets.js';

/** What is done is committed at most this much later, ms, where brokers answer. */
const commitDelayMs = 100;

export interface OffsetCommitterOptions {
  /** With its prefix. */
  topic: string;
  group: string;
  link: KafkaLink;
  progress: GroupProgress;
  clock: Clock;
  random: Random;
  /** What `onCommitted` is told of a message; undefined: nothing. */
  idOf: (message: JsonObject) => string | undefined;
  /** That the message with this id is done is committed. */
  onCommitted: (id: string) => void;
  /** Committing fails, and is tried again. */
  onTrouble: (error: Error) => void;
}

/** Commits what a group has done, soon and not each message by itself. */
export class OffsetCommitter {
  private timer: Timer | undefined;
  private current: Promise<void> | undefined;
  private dirty = false;
  /** The ids of messages done since the last commit; GroupProgress bounds how many that may be. */
  private done: string[] = [];
  private doneCount = 0;
  /** What brokers had last of this process, or when it began. */
  private known: CommittedProgress | undefined;
  private closed = false;

  constructor(private readonly options: OffsetCommitterOptions) {}

  /** Brokers have this, and the progress knows of it. */
  learnt(committed: CommittedProgress): void {
    this.known = committed;
  }

  /** Something is done: `message`, or what was not delivered. */
  note(message: JsonObject | undefined): void {
    this.dirty = true;
    if (message) {
      this.doneCount++;
      const id = this.options.idOf(message);
      if (id !== undefined) this.done.push(id);
    }
    if (this.closed || this.timer || this.current) return;
    this.timer = this.options.clock.setTimer(commitDelayMs, () => {
      this.timer = undefined;
      this.current = this.run();
    });
  }

  /** Brokers know that all messages below are done. */
  get committedBelow(): number {
    return this.known?.offset ?? 0;
  }

  /** Commits again what is committed: brokers forget a group that has committed nothing for long. */
  repeat(): void {
    this.note(undefined);
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
    // Another process may be the consumer by now: what it has committed must not be taken back.
    if (!progress.subscribed) await this.learn();
    const { done, doneCount } = this;
    this.done = [];
    this.doneCount = 0;
    this.dirty = false;
    const committed = progress.committed();
    try {
      await commit(link, topic, group, committed);
    } catch (error) {
      this.dirty = true;
      this.done = [...done, ...this.done];
      this.doneCount += doneCount;
      throw error;
    }
    this.known = committed;
    progress.settle(doneCount);
    for (const id of done) onCommitted(id);
  }

  private async learn(): Promise<void> {
    const { topic, group, link, progress } = this.options;
    const committed = await fetchCommitted(link, topic, group);
    if (committed === undefined) return;
    // What this process has committed says nothing new; and the log may have become shorter since.
    if (committed.offset === this.known?.offset && committed.metadata === this.known.metadata) return;
    progress.learn(committed);
    this.known = committed;
  }
}

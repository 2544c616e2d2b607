import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { backoffMs, Pace } from './pace.js';
import type { FetchedMessage, GroupProgress } from './group-progress.js';
import { protocolErrorType } from './kafka-errors.js';
import type { KafkaLink } from './kafka-link.js';
import type { KafkaRecord } from './kafka-broker.js';
import { logEnd, logStart } from './topic-offsets.js';

/** A broker answers a fetch that finds nothing after so long. */
const longPollMs = 2000;
/** Bytes of one answer, unless the first message alone is larger. */
const maxFetchBytes = 1024 * 1024;
/** No more is fetched while so much waits to be delivered. */
const maxWaitingBytes = 256 * 1024;

export interface TopicReaderOptions {
  /** With its prefix. */
  topic: string;
  /** Of its own: a fetch that waits holds up what is asked behind it. Closed with the reader. */
  link: KafkaLink;
  progress: GroupProgress;
  clock: Clock;
  random: Random;
  /** The answer to a fetch: what it brought, and where the topic ends. */
  onFetched: (records: readonly KafkaRecord[], end: number) => void;
  /** A message that is none, and is skipped. */
  onMalformed: (offset: number, reason: string) => void;
  /** The next message was to be at `from`, and that is outside of what brokers have: it goes on at `to`, or before. */
  onLost: (from: number, to: number) => void;
  /** Fetching fails, and is tried again. */
  onTrouble: (error: Error) => void;
}

/** Fetches what a group has not got yet, as far as there is room for it. */
export class TopicReader {
  private closed = false;
  private waker: (() => void) | undefined;
  private readonly pace: Pace;

  constructor(private readonly options: TopicReaderOptions) {
    this.pace = new Pace(options.clock);
    void this.run();
  }

  /** There may be room again. */
  wake(): void {
    this.waker?.();
  }

  close(): void {
    this.closed = true;
    this.options.link.close();
    this.wake();
  }

  private async run(): Promise<void> {
    const { progress, clock, random } = this.options;
    for (let failures = 0; !this.closed;) {
      if (progress.waitingBytes >= maxWaitingBytes) {
        await new Promise<void>((resolve) => (this.waker = resolve));
        continue;
      }
      try {
        await this.pace.turn();
        if (this.closed) return;
        await this.fetch();
        failures = 0;
      } catch (error) {
        if (this.closed) return;
        this.options.onTrouble(error as Error);
        await sleep(clock, backoffMs(failures++, random));
      }
    }
  }

  private async fetch(): Promise<void> {
    const { topic, link, progress, onFetched } = this.options;
    const request = { topic, offset: progress.nextOffset, maxWaitMs: longPollMs, maxBytes: maxFetchBytes };
    try {
      const { records, end } = await link.atLeader(topic, (broker) => broker.fetch(request));
      if (this.closed) return;
      this.pace.carried(records.length);
      onFetched(records, end);
      const last = records.at(-1);
      if (last !== undefined) progress.take(this.messages(records), last.offset + 1);
    } catch (error) {
      if (protocolErrorType(error) !== 'OFFSET_OUT_OF_RANGE') throw error;
      await this.resume();
    }
  }

  private *messages(records: readonly KafkaRecord[]): Iterable<FetchedMessage> {
    for (const { offset, value, isControl } of records) {
      // A fetch gives whole batches, also what lies before the place that was asked for.
      if (offset < this.options.progress.nextOffset || isControl) continue;
      try {
        yield { offset, message: readObject(value), bytes: value?.length ?? 0 };
      } catch (error) {
        this.options.onMalformed(offset, (error as Error).message);
      }
    }
  }

  /**
   * The next message is not there. Either retention was faster; or the log is shorter than it was (brokers lost its end, or the
   * topic was made again): then what is not done or may be new comes again.
   */
  private async resume(): Promise<void> {
    const { topic, link, progress, onLost, onFetched } = this.options;
    const [oldest, end] = await Promise.all([logStart(link, topic), logEnd(link, topic)]);
    if (this.closed) return;
    onLost(progress.nextOffset, oldest > progress.nextOffset ? oldest : end);
    if (oldest > progress.nextOffset) progress.take([], oldest);
    else progress.restart(progress.doneBelow <= end ? progress.doneBelow : oldest, end);
    onFetched([], end);
  }
}

function readObject(value: Buffer | null): JsonObject {
  if (value === null) throw new Error('it is empty');
  const message = JSON.parse(value.toString('utf8')) as JsonValue;
  if (!isJsonObject(message)) throw new Error('it is no JSON object');
  return message;
}

import type { Delivery, Subscription } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { GroupProgress } from './group-progress.js';
import type { CommittedProgress } from './group-progress.js';
import type { KafkaLink } from './kafka-link.js';
import type { KafkaRecord } from './kafka-broker.js';
import { OffsetCommitter } from './offset-committer.js';
import { TopicReader } from './topic-reader.js';
import type { TopicReaderOptions } from './topic-reader.js';

export interface KafkaGroupOptions {
  /** With its prefix. */
  topic: string;
  /** As brokers know it; undefined: it commits nothing. */
  group: string | undefined;
  /** For commits. */
  control: KafkaLink;
  /** Opens a connection for a reader. */
  openLink: () => KafkaLink;
  clock: Clock;
  random: Random;
  /** A message is done, or several at once that were not delivered. */
  onDone: (offset: number) => void;
  /** What `onCommitted` is told of a message; undefined: nothing. */
  idOf: (message: JsonObject) => string | undefined;
  /** That the message with this id is done is committed. */
  onCommitted: (id: string) => void;
  onFetched: (records: readonly KafkaRecord[], end: number) => void;
  onMalformed: TopicReaderOptions['onMalformed'];
  onLost: TopicReaderOptions['onLost'];
  onTrouble: TopicReaderOptions['onTrouble'];
}

/** Nothing more is delivered while the done of so many messages is not committed: that bounds what is remembered of them. */
const maxUncommitted = 50_000;

/** A group of which this process is the consumer, or may become it. */
export class KafkaGroup {
  readonly progress: GroupProgress;
  private readonly committer: OffsetCommitter | undefined;
  private reader: TopicReader | undefined;
  /** Whether this process has been its consumer. */
  begun = false;

  constructor(private readonly options: KafkaGroupOptions) {
    const { group, control: link, onDone } = options;
    this.progress = new GroupProgress(
      (offset, message) => {
        this.committer?.note(message);
        onDone(offset);
      },
      () => this.reader?.wake(),
      group === undefined ? Infinity : maxUncommitted,
    );
    if (group !== undefined) {
      this.committer = new OffsetCommitter({ ...options, group, link, progress: this.progress });
    }
  }

  /** Makes it a group of this process, again or for the first time: see GroupProgress.begin and resume. */
  begin(committed: CommittedProgress, redeliveredBelow: number): void {
    if (this.begun) this.progress.resume(committed, redeliveredBelow);
    else this.progress.begin(committed, redeliveredBelow);
    this.begun = true;
    this.committer?.learnt(committed);
  }

  get subscribed(): boolean {
    return this.progress.subscribed;
  }

  /** All messages below are done, and brokers know it. */
  get committedBelow(): number {
    // The log may have become shorter since: then messages below come again.
    return Math.min(this.committer?.committedBelow ?? 0, this.progress.doneBelow);
  }

  /** Tells brokers again how far it is. */
  commitAgain(): void {
    this.committer?.repeat();
  }

  subscribe(maxInFlight: number, handler: (delivery: Delivery) => void): Subscription {
    const { progress } = this;
    progress.subscribe(maxInFlight, handler);
    const reader = new TopicReader({ ...this.options, link: this.options.openLink(), progress });
    this.reader = reader;
    let open = true;
    return {
      setMaxInFlight: (count) => {
        if (open) progress.setMaxInFlight(count);
      },
      close: () => {
        if (open) this.suspend();
        open = false;
        return Promise.resolve();
      },
    };
  }

  /** Stops deliveries, and commits what is done. Rejects where that cannot be committed: it comes again. */
  async close(): Promise<void> {
    this.suspend();
    await this.committer?.close();
  }

  private suspend(): void {
    this.reader?.close();
    this.reader = undefined;
    this.progress.unsubscribe();
  }
}

import {
  followChannel,
  followTtlMs,
  readFollowRequest,
  type FollowedLines,
  type FollowRequest,
} from '@gpuwhisk/common/activations/followed-logs';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import { ShortLivedMap } from '@gpuwhisk/common/short-lived-map';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

/** Dependencies of FollowedRuns. */
export interface FollowedRunsParts {
  /** The topic of the invoker. */
  invoker: string;
  state: Pick<ClusterState, 'publish' | 'subscribe'>;
  clock: Clock;
  logger: Logger;
}

/** The lines of a run so far, from a place on. */
type Printed = (from: number) => string[];

interface Run {
  /** Differs from run to run of this process. */
  count: number;
  namespace: string;
  /** Undefined if the run's lines cannot be told apart from those of others. */
  printed: Printed | undefined;
}

interface Follower extends FollowRequest {
  untilMs: number;
}

/** Interval of looks at the lines of followed runs, ms. */
const lookMs = 100;
/** Requests of streams that are kept; more are ignored until others expire. */
const mostFollowers = 1000;
/** Characters of lines in one message, and in the messages of one look at a run. */
const [messageCharacters, lookCharacters] = [64 * 1024, 256 * 1024];
/** Characters that are sent at a run's end; the rest is in the record. */
const endCharacters = 1024 * 1024;

/**
 * Sends lines of running activations to controllers that follow them, within 100 ms. A run whose container runs others at the
 * same time has its lines sent at its end, as only then they can be told apart.
 */
export class FollowedRuns {
  private readonly running = new ShortLivedMap<string, Run>();
  private readonly followers = new Map<string, Follower>();
  private subscription: StateSubscription | undefined;
  private timer: Timer | undefined;
  private count = 0;

  constructor(private readonly parts: FollowedRunsParts) {}

  async open(): Promise<void> {
    this.subscription = await this.parts.state.subscribe(followChannel, (message) => this.ask(message));
  }

  /** Called when a run begins. `printed` gives its lines so far until `ended`; undefined if they cannot be told apart. */
  began(activationId: string, namespace: string, printed: Printed | undefined): void {
    this.running.set(activationId, { count: ++this.count, namespace, printed });
  }

  /** Called when the run that began with `printed` is over, also if it has not ended its activation. */
  left(activationId: string, printed: Printed | undefined): void {
    if (this.running.get(activationId)?.printed === printed) this.running.delete(activationId);
  }

  /** Called with all lines when a run has ended, before its container is used for another. */
  ended(activationId: string, lines: readonly string[]): void {
    const run = this.running.get(activationId);
    if (run === undefined) return;
    this.running.delete(activationId);
    if (this.followers.size === 0) return;
    for (const [key, follower] of this.followers) {
      if (follower.activationId !== activationId || follower.namespace !== run.namespace) continue;
      this.followers.delete(key);
      this.send(follower, run, lines.slice(this.placeIn(run, follower)), endCharacters);
      this.publish(follower, { run: this.nameOf(run), from: follower.from, lines: [], total: lines.length });
    }
  }

  async close(): Promise<void> {
    this.timer?.cancel();
    await this.subscription?.close();
  }

  private ask(message: JsonValue): void {
    const request = readFollowRequest(message);
    if (request === undefined) return;
    const key = `${request.to} ${request.stream}`;
    if (!this.followers.has(key) && this.followers.size >= mostFollowers) return;
    const follower = { ...request, untilMs: this.parts.clock.monotonicMs() + followTtlMs };
    this.followers.set(key, follower);
    this.lookAt(follower);
    this.lookLater();
  }

  private lookLater(): void {
    if (this.timer !== undefined) return;
    this.timer = this.parts.clock.setBackgroundTimer(lookMs, () => {
      this.timer = undefined;
      const nowMs = this.parts.clock.monotonicMs();
      for (const [key, follower] of this.followers) {
        if (follower.untilMs <= nowMs) this.followers.delete(key);
        else this.lookAt(follower);
      }
      if (this.followers.size > 0) this.lookLater();
    });
  }

  private lookAt(follower: Follower): void {
    const run = this.running.get(follower.activationId);
    if (run?.printed === undefined || run.namespace !== follower.namespace) return;
    this.send(follower, run, run.printed(this.placeIn(run, follower)), lookCharacters);
  }

  private nameOf({ count }: Run): string {
    return `${this.parts.invoker}/${count}`;
  }

  /** The place of the first line of the run that the follower lacks. */
  private placeIn(run: Run, follower: Follower): number {
    return follower.run === this.nameOf(run) ? follower.from : 0;
  }

  /** Sends the lines that the follower lacks, up to so many characters. */
  private send(follower: Follower, run: Run, lacking: readonly string[], mostCharacters: number): void {
    const name = this.nameOf(run);
    follower.from = this.placeIn(run, follower);
    follower.run = name;
    let sent = 0;
    let lines: string[] = [];
    let characters = 0;
    const flush = (): void => {
      if (lines.length === 0) return;
      this.publish(follower, { run: name, from: follower.from, lines });
      follower.from += lines.length;
      sent += characters;
      [lines, characters] = [[], 0];
    };
    for (const line of lacking) {
      lines.push(line);
      characters += line.length;
      if (characters >= messageCharacters) flush();
      if (sent >= mostCharacters) return;
    }
    flush();
  }

  private publish({ to, stream }: Follower, told: Omit<FollowedLines, 'stream'>): void {
    this.parts.state.publish(to, { stream, ...told }).catch((error: unknown) => {
      this.parts.logger.warn({ error: String(error) }, 'lines of a followed run could not be sent');
    });
  }
}

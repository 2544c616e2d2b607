import type { ServerResponse } from 'node:http';
import {
  followChannel,
  followedLinesChannel,
  followRenewMs,
  readFollowedLines,
} from '@gpuwhisk/common/activations/followed-logs';
import type { FollowedLines, FollowRequest } from '@gpuwhisk/common/activations/followed-logs';
import { noSuchEntity, overloaded, tooManyStreams } from '@gpuwhisk/common/errors';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Authentication } from '../authentication/authentication.js';
import type { Answer } from '../http/answer.js';
import { knownError } from '../http/answer.js';
import type { IdentifiedCall } from '../http/route.js';
import { eventText } from './followed.js';

/** Dependencies of LogStreams. */
export interface LogStreamsParts {
  state: Pick<ClusterState, 'publish' | 'subscribe'>;
  authentication: Pick<Authentication, 'namespace'>;
  clock: Clock;
  logger: Logger;
  /** This controller's number. */
  instance: number;
}

/** An activation whose logs are followed. */
export interface FollowedActivation {
  namespace: string;
  activationId: string;
  /** The lines of its record; undefined while there is no record. */
  recorded(): Promise<readonly string[] | undefined>;
  /** Whether it was accepted and has not ended. */
  isInFlight(): Promise<boolean>;
}

/** Streams of a controller, and of one namespace, at most. */
const mostStreams = 500;
const mostOfNamespace = 20;
/** Characters that wait for a reader; lines beyond are dropped while the activation runs. */
const mostUnread = 1024 * 1024;
/** Characters of records whose lines are being told, together; a stream beyond ends with 503. */
const mostHeld = 256 * 1024 * 1024;
/** A reader that has not read for so long, ms, is cut off. */
const stalledMs = 30_000;
/** Time after which a reader that is told nothing gets a sign of life, and interval of checks of its key, ms. */
const beatMs = 5000;
/** Looks for the record of an activation that has ended: the first interval, the longest one, and the time after which none is expected, ms. */
const [firstLookMs, recordLookMs, recordWaitMs] = [5, 50, 1000];
/** Looks, one a renewal, that find an activation neither in flight nor recorded before its stream ends. */
const mostAbsences = 5;
/** Characters of one event. */
const eventCharacters = 64 * 1024;

/**
 * Streams of the lines of activations, as server-sent events. Lines of a running activation come from its invoker; what is
 * missing at its end comes from its record.
 */
export class LogStreams {
  private readonly streams = new Map<number, LogStream>();
  /** Namespaces of the streams that are about to begin. */
  private readonly opening: string[] = [];
  private readonly held: Held = { characters: 0 };
  private subscribed: Promise<unknown> | undefined;
  private count = 0;

  constructor(private readonly parts: LogStreamsParts) {}

  /** Begins a stream. Rejects with ApiError: 404 for an unknown activation, 429, 503. */
  async open(call: IdentifiedCall, followed: FollowedActivation): Promise<Answer> {
    const { uuid } = call.identity.namespace;
    this.checkBounds(uuid);
    let lines: readonly string[] | undefined;
    this.opening.push(uuid);
    try {
      lines = await this.found(followed);
      await this.subscribe();
    } finally {
      this.opening.splice(this.opening.indexOf(uuid), 1);
    }
    // Several may have got so far before the first of them is counted.
    this.checkBounds(uuid);
    return {
      status: 200,
      body: '',
      contentType: 'text/event-stream',
      headers: ['Cache-Control', 'no-store'],
      stream: (response) => {
        const id = ++this.count;
        const stream = new LogStream({ ...this.parts, held: this.held }, id, call, followed, response);
        this.streams.set(id, stream);
        response.once('close', () => {
          stream.close();
          this.streams.delete(id);
        });
        // The reader knows at once that it follows; the first line may come much later.
        response.flushHeaders();
        stream.run(lines);
      },
    };
  }

  /** Ends all streams. */
  close(): void {
    for (const stream of this.streams.values()) stream.end(503, 'The controller stops.');
  }

  /** Throws ApiError (429, 503) if no further stream may begin. */
  private checkBounds(uuid: string): void {
    if (this.streams.size + this.opening.length >= mostStreams) throw overloaded();
    let own = 0;
    for (const other of this.opening) if (other === uuid) own += 1;
    for (const { call } of this.streams.values()) if (call.identity.namespace.uuid === uuid) own += 1;
    if (own >= mostOfNamespace) throw tooManyStreams(mostOfNamespace);
  }

  /** The lines of the record, or undefined for an activation in flight. Throws ApiError (404) for others. */
  private async found(followed: FollowedActivation): Promise<readonly string[] | undefined> {
    const lines = await followed.recorded();
    if (lines !== undefined || (await followed.isInFlight())) return lines;
    // Its record may be on the way.
    for (let waitMs = firstLookMs; waitMs <= recordLookMs; waitMs *= 2) {
      await sleep(this.parts.clock, waitMs);
      const late = await followed.recorded();
      if (late !== undefined) return late;
    }
    throw noSuchEntity();
  }

  private async subscribe(): Promise<void> {
    const { state, instance, logger } = this.parts;
    this.subscribed ??= state.subscribe(followedLinesChannel(instance), (message) => this.take(message));
    try {
      await this.subscribed;
    } catch (error) {
      this.subscribed = undefined;
      logger.error({ error: String(error) }, 'lines of running activations cannot be received');
      throw overloaded();
    }
  }

  private take(message: JsonValue): void {
    const told = readFollowedLines(message);
    if (told !== undefined) this.streams.get(told.stream)?.take(told);
  }
}

/** What the records hold whose lines are being told, in all streams. */
interface Held {
  characters: number;
}

/** One reader of the lines of an activation. */
class LogStream {
  /** The run whose lines the reader has, and their number. */
  private at: Pick<FollowRequest, 'run' | 'from'> = { from: 0 };
  private dropped = 0;
  /** Time of the last message of the run's invoker. */
  private heardMs = -Infinity;
  private toldMs: number;
  private checkedMs: number;
  private absences = 0;
  private timer: Timer | undefined;
  private state: 'live' | 'ending' | 'closed' = 'live';

  constructor(
    private readonly parts: LogStreamsParts & { held: Held },
    private readonly id: number,
    readonly call: IdentifiedCall,
    private readonly followed: FollowedActivation,
    private readonly response: ServerResponse,
  ) {
    this.toldMs = this.checkedMs = parts.clock.monotonicMs();
  }

  /** Follows the activation to its end; `lines` are those of its record if it has ended. */
  run(lines: readonly string[] | undefined): void {
    if (lines !== undefined) this.guard(this.finish(lines));
    else this.guard(this.turn());
  }

  /** Tells the reader why the stream ends, and ends it. */
  end(status: number, error?: string): void {
    this.close();
    if (!this.response.writable) return;
    this.response.end(eventText('end', { status, ...(error !== undefined && { error }) }));
    const cut = this.parts.clock.setBackgroundTimer(stalledMs, () => this.response.destroy());
    this.response.once('close', () => cut.cancel());
  }

  close(): void {
    this.state = 'closed';
    this.timer?.cancel();
  }

  take({ run, from, lines, total }: FollowedLines): void {
    if (this.state !== 'live') return;
    this.heardMs = this.parts.clock.monotonicMs();
    if (this.at.run !== run) {
      if (this.at.run !== undefined) this.write('again', {});
      this.at = { run, from: 0 };
      this.dropped = 0;
    }
    // Lines before `from` were lost; the next request asks for them again.
    if (from <= this.at.from) this.tell(lines.slice(this.at.from - from));
    if (total !== undefined) this.guard(this.ended(total));
  }

  private guard(work: Promise<void>): void {
    work.catch((error: unknown) => {
      const { status, message } = knownError(error, this.call.transactionId, this.parts.logger);
      this.end(status, message);
    });
  }

  /** Asks for lines, and looks whether the activation has ended; again until the stream ends. */
  private async turn(): Promise<void> {
    const { clock, authentication, state, instance, logger } = this.parts;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.checkedMs >= beatMs) {
      this.checkedMs = nowMs;
      await authentication.namespace(this.call.request.headers.authorization);
    }
    if (this.isStalled(nowMs)) return;
    const { activationId, namespace } = this.followed;
    const to = followedLinesChannel(instance);
    const request: FollowRequest = { activationId, namespace, to, stream: this.id, ...this.at };
    await state.publish(followChannel, request as unknown as JsonValue).catch((error: unknown) => {
      logger.warn({ error: String(error) }, 'lines of a followed activation could not be asked for');
    });
    const lines = await this.followed.recorded();
    if (this.state !== 'live') return;
    if (lines !== undefined) return this.finish(lines);
    this.absences = (await this.isAbsent()) ? this.absences + 1 : 0;
    if (this.state !== 'live') return;
    if (this.absences >= mostAbsences) return this.end(404, noSuchEntity().message);
    if (nowMs - this.toldMs >= beatMs && !this.response.writableNeedDrain) this.write('beat', {});
    this.timer = clock.setBackgroundTimer(followRenewMs, () => this.guard(this.turn()));
  }

  private async isAbsent(): Promise<boolean> {
    if (this.parts.clock.monotonicMs() - this.heardMs < beatMs) return false;
    try {
      return !(await this.followed.isInFlight());
    } catch {
      // The cluster's state is out of reach for a while: it says so itself.
      return false;
    }
  }

  /** The run is over: what is missing comes from the record, if one is kept. */
  private async ended(total: number): Promise<void> {
    this.state = 'ending';
    this.timer?.cancel();
    const { clock } = this.parts;
    const untilMs = clock.monotonicMs() + recordWaitMs;
    for (let waitMs = firstLookMs; clock.monotonicMs() < untilMs; waitMs = Math.min(recordLookMs, 2 * waitMs)) {
      const lines = await this.followed.recorded();
      if (lines !== undefined) return this.finish(lines);
      await sleep(clock, waitMs);
    }
    this.dropped += Math.max(0, total - this.at.from);
    this.sayDropped();
    this.end(200);
  }

  /** Tells the rest of the record's lines as fast as the reader reads, and ends the stream. */
  private async finish(lines: readonly string[]): Promise<void> {
    if (this.state === 'closed') return;
    this.state = 'ending';
    this.timer?.cancel();
    // Lines that were dropped last come after all.
    const rest = lines.slice(this.at.from - this.dropped);
    const characters = rest.reduce((sum, line) => sum + line.length, 0);
    const { held } = this.parts;
    if (held.characters + characters > mostHeld && held.characters > 0) return this.end(503, overloaded().message);
    held.characters += characters;
    try {
      for (const part of inParts(rest)) {
        await this.drained();
        if (this.response.destroyed) return;
        this.write('lines', { lines: part });
      }
    } finally {
      held.characters -= characters;
    }
    this.end(200);
  }

  private async drained(): Promise<void> {
    while (this.response.writableNeedDrain && !this.response.destroyed) {
      if (this.isStalled(this.parts.clock.monotonicMs())) return;
      await sleep(this.parts.clock, recordLookMs);
    }
  }

  /** Cuts off a reader that has not read for long. */
  private isStalled(nowMs: number): boolean {
    if (!this.response.writableNeedDrain || nowMs - this.toldMs < stalledMs) return false;
    this.response.destroy();
    return true;
  }

  /** Tells lines, or drops them if the reader is too far behind. */
  private tell(lines: string[]): void {
    this.at.from += lines.length;
    if (this.response.writableLength > mostUnread) {
      this.dropped += lines.length;
      return;
    }
    this.sayDropped();
    for (const part of inParts(lines)) this.write('lines', { lines: part });
  }

  private sayDropped(): void {
    if (this.dropped > 0) this.write('dropped', { lines: this.dropped });
    this.dropped = 0;
  }

  private write(event: string, fields: { lines?: string[] | number }): void {
    const { clock } = this.parts;
    this.toldMs = clock.monotonicMs();
    this.response.write(eventText(event, { at: clock.now(), ...fields }));
  }
}

/** Lines in groups of about the size of an event. */
function* inParts(lines: readonly string[]): Generator<string[]> {
  let part: string[] = [];
  let characters = 0;
  for (const line of lines) {
    part.push(line);
    characters += line.length;
    if (characters < eventCharacters) continue;
    yield part;
    [part, characters] = [[], 0];
  }
  if (part.length > 0) yield part;
}

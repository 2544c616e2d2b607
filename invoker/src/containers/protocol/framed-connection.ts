import type { Duplex } from 'node:stream';
import { ShortLivedMap } from '@gpuwhisk/common/short-lived-map';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Call, CallLimits, InitRequest, CallOutcome, RunRequest } from '../container-factory.js';
import {
  errorOutcome,
  oversizeOutcome,
  parseJson,
  resultOutcome,
  resultsOutcome,
  unreadOutcome,
} from './call-outcome.js';
import { deferred } from './connection.js';
import type { Connection, Deferred } from './connection.js';
import { encodeFrame, FrameReader, maxFrameBytes, encodeParts, initParts, runParts } from './frames.js';
import type { FrameHandler } from './frames.js';
import type { LogCollector } from './log-collector.js';

const protocolVersion = 1;
const types = {
  hello: 1,
  init: 2,
  run: 3,
  result: 4,
  error: 5,
  log: 6,
  cancel: 7,
  bye: 8,
  unload: 9,
  check: 10,
  results: 11,
  launcher: 240,
} as const;
/** How long the log frame may follow its answer, ms. */
const logWaitMs = 2000;
/** Bytes that are read of frames other than results. */
const maxOtherBytes = 1024 * 1024;
/** Runs that timed out whose answers may still come. */
const maxForgotten = 1024;
const maxId = 0xffff_ffff;

interface Pending {
  type: number;
  /** What was printed by then is left to the next call: an init that succeeded, a check. */
  leavesLogs: boolean;
  limits: CallLimits;
  sentMs: number;
  outcome: Deferred<CallOutcome>;
  logs: Deferred<string[]>;
  /** First the time-out, then the wait for the log frame. */
  timer: Timer | undefined;
  answered: boolean;
  /** Its log frame came. */
  ended: boolean;
  logged: boolean;
}

/** What the container must know of its connection. */
export interface FramedEvents {
  /** The runtime said hello. */
  hello(): void;
  /** The launcher reports `ready`, or `error`, a measure and a reason on lines of their own. */
  launcher(text: string): void;
  /** The runtime broke the protocol, or its end of the socket is closed: the container is of no use. */
  broken(reason: string): void;
}

/** The framed protocol over the container's socket. */
export class FramedConnection implements Connection, FrameHandler {
  busyMs = 0;
  pid: number | undefined;
  canBatch = false;
  canUnload = false;
  endsLate = false;
  /** Payloads are lists of parts, and errors plain text: the runtime reads no JSON. */
  private takesParts = false;
  private readonly pending = new ShortLivedMap<number, Pending>();
  private readonly forgotten = new Map<number, 'awaited' | 'answered'>();
  /** Answered by what is being read. */
  private unlogged: Pending[] = [];
  private unsent: Buffer[] = [];
  /** Runs whose last output can be read by the end of this turn. */
  private readonly printed: Pending[] = [];
  private nextId = 1;
  private greeted = false;
  /** The launcher has said whether the sandbox stands. */
  private reported = false;
  private leaving = false;
  private state: 'open' | 'closed' | 'ended' = 'open';
  private lost: CallOutcome = { type: 'lost', oomKilled: false };

  constructor(
    private readonly socket: Duplex,
    private readonly logs: LogCollector,
    private readonly clock: Clock,
    private readonly events: FramedEvents,
  ) {
    const reader = new FrameReader(this);
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      if (this.unlogged.length > 0) this.awaitLogFrames();
    });
    socket.on('error', (error: Error) => this.break(`its socket failed: ${error.message}`));
    socket.on('end', () => this.break('it closed its socket'));
  }

  init(request: InitRequest, limits: CallLimits): Call {
    this.logs.limit(limits.logLimitBytes);
    if (!this.takesParts) return this.call(types.init, JSON.stringify(request), limits);
    const parts = initParts(request);
    return typeof parts === 'string' ? refusal(parts) : this.call(types.init, encodeParts(parts), limits);
  }

  run(request: RunRequest, limits: CallLimits): Call {
    this.logs.limit(limits.logLimitBytes);
    const payload = this.takesParts ? encodeParts(runParts(request)) : JSON.stringify(request);
    return this.call(types.run, payload, limits);
  }

  unload(thorough: boolean, limits: CallLimits): Call {
    this.logs.limit(limits.logLimitBytes);
    const payload = this.takesParts
      ? encodeParts(thorough ? [['thorough', 'true']] : [])
      : JSON.stringify(thorough ? { thorough } : {});
    return this.call(types.unload, payload, limits);
  }

  check(limits: CallLimits): Call {
    return this.call(types.check, this.takesParts ? '' : '{}', limits);
  }

  close(): void {
    if (this.state === 'open') this.state = 'closed';
  }

  ended(oomKilled: boolean): void {
    this.state = 'ended';
    this.lost = { type: 'lost', oomKilled };
    for (const entry of this.pending.values()) this.settle(entry, this.lost);
  }

  drained(): void {
    for (const entry of this.pending.values()) this.finishLogs(entry);
    this.pending.clear();
  }

  wanted(type: number, id: number): number {
    if (type === types.result || type === types.results) {
      const limits = this.pending.get(id)?.limits;
      return limits ? Math.max(limits.maxResultBytes, limits.truncationBytes) : 0;
    }
    return maxOtherBytes;
  }

  frame(type: number, id: number, payload: Buffer, lengthBytes: number): void {
    if (this.state !== 'open') return;
    switch (type) {
      case types.result:
      case types.results:
      case types.error:
        this.answer(type, id, payload, lengthBytes);
        return;
      case types.log:
        this.logFrame(id, payload);
        return;
      case types.hello:
        this.helloFrame(payload);
        return;
      case types.bye:
        if (this.leaving) this.break('it said bye twice');
        this.leaving = true;
        return;
      case types.launcher:
        this.launcherFrame(payload.toString());
        return;
      default:
        this.break(`it sent a frame of unknown type ${type}`);
    }
  }

  tooLong(lengthBytes: number): void {
    this.break(`it sent a frame of ${lengthBytes} bytes`);
  }

  private call(type: number, body: string | Buffer, limits: CallLimits): Call {
    const entry: Pending = {
      type,
      leavesLogs: type === types.check,
      limits,
      sentMs: this.clock.monotonicMs(),
      outcome: deferred(),
      logs: deferred(),
      timer: undefined,
      answered: false,
      ended: false,
      logged: false,
    };
    const call: Call = { outcome: entry.outcome.promise, logs: entry.logs.promise };
    if (this.leaving || this.state === 'ended') {
      this.settle(entry, this.leaving ? { type: 'unavailable' } : this.lost);
      entry.logs.resolve([]);
      return call;
    }
    const frame = encodeFrame(type, this.nextId, body);
    if (frame.length > maxFrameBytes) {
      return refusal(`The request of ${frame.length} bytes is too long.`);
    }
    const id = this.nextId;
    this.nextId = id === maxId ? 1 : id + 1;
    this.pending.set(id, entry);
    if (this.state === 'closed') return call; // `ended` is on its way.
    entry.timer = this.clock.setTimer(limits.timeoutMs, () => this.expire(id, entry));
    this.send(frame);
    return call;
  }

  /** Writes a frame; while other runs are under way, together with those that come in the same turn. */
  private send(frame: Buffer): void {
    if (this.pending.size <= 1 && this.unsent.length === 0) {
      this.socket.write(frame);
      return;
    }
    if (this.unsent.push(frame) > 1) return;
    this.clock.defer(() => {
      this.socket.write(Buffer.concat(this.unsent));
      this.unsent = [];
    });
  }

  private answer(type: number, id: number, payload: Buffer, lengthBytes: number): void {
    const entry = this.pending.get(id);
    if (!entry || entry.answered) {
      if (this.forgotten.get(id) === 'awaited') this.forgotten.set(id, 'answered');
      else this.break(`it answered ${id}, which was not asked`);
      return;
    }
    entry.answered = true;
    entry.timer?.cancel();
    entry.timer = undefined;
    if (entry.type === types.init) entry.leavesLogs = type === types.result;
    this.unlogged.push(entry);
    entry.outcome.resolve(this.outcomeOf(entry, type, payload, lengthBytes));
  }

  private logFrame(id: number, payload: Buffer): void {
    const entry = this.pending.get(id);
    if (!entry?.answered) {
      if (this.forgotten.get(id) !== 'answered') this.break(`it ended the logs of ${id}, which was not answered`);
      this.forgotten.delete(id);
      return;
    }
    this.pending.delete(id);
    entry.ended = true;
    if (entry.type === types.run) this.busyMs += runTimeMs(payload, this.clock.monotonicMs() - entry.sentMs);
    // What was flushed before the frame is readable now, and is read before deferred work.
    if (entry.leavesLogs) this.finishLogs(entry);
    else if (this.printed.push(entry) === 1) {
      this.onceRead(() => {
        for (const each of this.printed.splice(0)) this.finishLogs(each);
      });
    }
  }

  /** The launcher reports once; that the sandbox is ready may overtake the runtime's hello or follow it. */
  private launcherFrame(text: string): void {
    if (this.reported || (this.greeted && text !== 'ready')) return this.break('it sent a frame of the launcher');
    this.reported = true;
    this.events.launcher(text);
  }

  private helloFrame(payload: Buffer): void {
    const hello = parseJson(payload.toString()) as
      Partial<Record<'version' | 'pid' | 'parts' | 'batch' | 'unload' | 'endsLate', unknown>> | null | undefined;
    if (this.greeted || hello?.version !== protocolVersion) {
      this.break(`it sent the hello ${payload.toString('utf8', 0, 200)}`);
      return;
    }
    this.greeted = true;
    if (Number.isSafeInteger(hello.pid)) this.pid = hello.pid as number;
    this.takesParts = hello.parts === true;
    this.canBatch = hello.batch === true;
    this.canUnload = hello.unload === true;
    this.endsLate = hello.endsLate === true;
    this.events.hello();
  }

  private outcomeOf(entry: Pending, type: number, payload: Buffer, lengthBytes: number): CallOutcome {
    const { takesParts } = this;
    if (type === types.error) {
      const text = payload.toString();
      return takesParts ? { type: 'error', error: text, body: '' } : errorOutcome(text);
    }
    if (entry.type !== types.run) return { type: 'ok' };
    const { maxResultBytes, truncationBytes } = entry.limits;
    if (lengthBytes > maxResultBytes) return oversizeOutcome(payload, truncationBytes, lengthBytes);
    if (type === types.results) return resultsOutcome(payload);
    return takesParts ? unreadOutcome(payload.toString(), lengthBytes) : resultOutcome(payload.toString(), lengthBytes);
  }

  private expire(id: number, entry: Pending): void {
    this.pending.delete(id);
    this.forgotten.set(id, 'awaited');
    if (this.forgotten.size > maxForgotten) this.break('it does not answer cancelled runs');
    if (this.state === 'open') this.send(encodeFrame(types.cancel, id, '{}'));
    this.settle(entry, { type: 'timeout' });
    this.onceRead(() => this.finishLogs(entry));
  }

  /** Calls `run` when what is readable now has been read. */
  private onceRead(run: () => void): void {
    // Streams that were held back are read in the turn after this one.
    if (this.logs.catchUp()) this.clock.defer(() => this.clock.defer(run));
    else this.clock.defer(run);
  }

  private awaitLogFrames(): void {
    for (const entry of this.unlogged) {
      if (!entry.ended) entry.timer = this.clock.setTimer(logWaitMs, () => this.finishLogs(entry));
    }
    this.unlogged = [];
  }

  private settle(entry: Pending, outcome: CallOutcome): void {
    entry.timer?.cancel();
    entry.timer = undefined;
    if (!entry.answered) entry.outcome.resolve(outcome);
    entry.answered = true;
  }

  private finishLogs(entry: Pending): void {
    entry.timer?.cancel();
    entry.timer = undefined;
    if (entry.logged) return;
    entry.logged = true;
    entry.logs.resolve(entry.leavesLogs ? [] : this.logs.cut());
  }

  private break(reason: string): void {
    if (this.state !== 'open') return;
    this.state = 'closed';
    this.events.broken(reason);
  }
}

/** How long a run took by the runtime's own account, else as it looked from here, which is the longest it can be; ms. */
function runTimeMs(logPayload: Buffer, seenMs: number): number {
  const told = parseJson(logPayload.toString()) as { us?: unknown } | null | undefined;
  return typeof told?.us === 'number' && told.us >= 0 ? Math.min(told.us / 1000, seenMs) : seenMs;
}

/** A call that is over before anything was sent. */
function refusal(error: string): Call {
  return { outcome: Promise.resolve({ type: 'error', error, body: '' }), logs: Promise.resolve([]) };
}

import type { Duplex } from 'node:stream';
import { ShortLivedMap } from '@gpuwhisk/common/short-lived-map';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { LargeCode } from '@gpuwhisk/common/entities/large-code';
import { cudaContextWays } from '@gpuwhisk/common/prewarmer';
import type { CudaContextKept } from '@gpuwhisk/common/prewarmer';
import type { Call, CallLimits, InitRequest, CallOutcome, LostOutcome, RunRequest } from '../container-factory.js';
import {
  errorOutcome,
  oversizeOutcome,
  parseJson,
  resultOutcome,
  resultsOutcome,
  runTimeMs,
  takenOutcome,
  toldSize,
  unreadOutcome,
} from './call-outcome.js';
import type { LogPayload } from './call-outcome.js';
import { later } from '../container-factory.js';
import { deferred } from './connection.js';
import type { Connection, Deferred } from './connection.js';
import {
  encodeFrame,
  encodeParts,
  frameHeader,
  FrameReader,
  frameTypes as types,
  initParts,
  maxFrameBytes,
  runParts,
} from './frames.js';
import type { FrameHandler, HelloPayload } from './frames.js';
import { largePayload } from './large-init.js';
import type { LargePayload } from './large-init.js';
import { loadOutcome } from './load-outcome.js';
import type { LogCollector } from './log-collector.js';

const protocolVersion = 1;
/** How long the log frame may follow its answer, ms. */
const logWaitMs = 2000;
/** Large code is written in frames of so many bytes: a runtime holds the code and one of them. */
const codeFrameBytes = 256 * 1024;
/** Largest part that is read of frames other than results, bytes. */
const maxOtherBytes = 1024 * 1024;
/** Runs past their time limit whose answers are still awaited, at most. */
const maxForgotten = 1024;
const maxId = 0xffff_ffff;
/** Sizes that a function may report from the start of one run to the start of the next. */
const maxSizes = 1000;
const emptyJson = '{}';

interface Pending {
  type: number;
  /** Whether printed lines are left to the next call, as after a successful init or a check. */
  leavesLogs: boolean;
  /** Whether the run went by the socket for runs. */
  direct: boolean;
  limits: CallLimits;
  sentMs: number;
  /** Of a run, as its function has reported it last; absent: it has not. */
  inputSize?: number;
  outcome: Deferred<CallOutcome>;
  logs: Deferred<string[]>;
  /** The timer of the time limit, later that of the wait for the log frame. */
  timer: Timer | undefined;
  answered: boolean;
  /** Whether the log frame has arrived. */
  ended: boolean;
  logged: boolean;
}

/** Events of the connection for its container. */
export interface FramedEvents {
  /** The runtime said hello. */
  hello(): void;
  /** A report of the launcher: `ready`, or three lines: `error`, a measure and a reason. */
  launcher(text: string): void;
  /** The runtime broke the protocol or closed its end of the socket: the container must not be used again. */
  broken(reason: string): void;
}

/** The framed protocol over the container's socket. */
export class FramedConnection implements Connection, FrameHandler {
  busyMs = 0;
  pid: number | undefined;
  cudaContext: CudaContextKept | undefined;
  unfit: string | undefined;
  canBatch = false;
  canUnload = false;
  endsLate = false;
  /** Payloads are lists of parts, and errors plain text: the runtime reads no JSON. */
  private takesParts = false;
  /** Whether large code comes in frames of its own behind its init. */
  private takesCode = false;
  /** Whether payloads of the socket for runs are lists of parts, too; batches do not go there then. */
  private runsTakeParts = false;
  /** The socket for runs, which a function that was injected answers by itself, with what has been read of it. */
  private runs: { socket: Duplex; reader: FrameReader } | undefined;
  /** Whether the runtime takes runs by that socket at present. */
  private takesRuns = false;
  /** Whether bytes of that socket are being read: anything may have been written there by the function. */
  private readsRuns = false;
  private readonly pending = new ShortLivedMap<number, Pending>();
  private readonly forgotten = new Map<number, 'awaited' | 'answered'>();
  /** Calls that the bytes being read have answered. */
  private unlogged: Pending[] = [];
  private readonly unsent: Buffer[] = [];
  /** Runs whose last output can be read by the end of this turn of the event loop. */
  private readonly printed: Pending[] = [];
  private nextId = 1;
  /** Sizes of inputs that were reported since the last run was sent. */
  private sizes = 0;
  private greeted = false;
  /** Whether the launcher has reported the sandbox's start or failure. */
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

  /** Uses a second socket for runs while the runtime says so. */
  openRuns(socket: Duplex): void {
    const reader = new FrameReader({
      wanted: (type, id) => this.wanted(type, id),
      frame: (type, id, payload, lengthBytes) => this.runsFrame(type, id, payload, lengthBytes),
      tooLong: (lengthBytes) => this.tooLong(lengthBytes),
    });
    this.runs = { socket, reader };
    socket.on('data', (chunk: Buffer) => {
      this.readsRuns = true;
      reader.push(chunk);
      this.readsRuns = false;
      if (this.unlogged.length > 0) this.awaitLogFrames();
    });
    socket.on('error', (error: Error) => this.break(`its socket for runs failed: ${error.message}`));
    socket.on('end', () => this.break('it closed its socket for runs'));
  }

  init(request: InitRequest, limits: CallLimits): Call {
    this.logs.limit(limits.logLimitBytes);
    const { large, ...rest } = request;
    if (large !== undefined) return later(this.initLarge(rest, large, limits));
    if (!this.takesParts) return this.call(types.init, JSON.stringify(request), limits);
    const parts = initParts(request);
    return typeof parts === 'string' ? refusal(parts) : this.call(types.init, encodeParts(parts), limits);
  }

  private async initLarge(request: InitRequest, large: LargeCode, limits: CallLimits): Promise<Call> {
    if (this.takesCode) {
      const announced = JSON.stringify({ ...request, codeBytes: large.bytes.length });
      return this.call(types.init, announced, limits, false, large);
    }
    const payload = await largePayload(this.clock, request, large, this.takesParts);
    return typeof payload === 'string' ? refusal(payload) : this.call(types.init, payload, limits);
  }

  run(request: RunRequest, limits: CallLimits): Call {
    this.logs.limit(limits.logLimitBytes);
    const direct = this.takesRuns && !(this.runsTakeParts && request.batch !== undefined);
    const inParts = this.takesParts && (!direct || this.runsTakeParts);
    const payload = inParts ? encodeParts(runParts(request)) : JSON.stringify(request);
    return this.call(types.run, payload, limits, direct);
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

  printedSince(from: number): string[] {
    return this.logs.since(from);
  }

  close(): void {
    if (this.state === 'open') this.state = 'closed';
  }

  ended(lost: LostOutcome): void {
    this.state = 'ended';
    this.lost = lost;
    for (const entry of this.pending.values()) {
      // A runtime that says bye in place of an answer has not begun to load the code.
      const isUntaken = this.leaving && entry.type === types.init;
      this.settle(entry, isUntaken ? { type: 'unavailable' } : this.lost);
    }
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
      case types.progress:
        // A report may cross the end of its run.
        this.pending.get(id)?.limits.onProgress?.(payload.toString());
        return;
      case types.size:
        this.sizeFrame(payload);
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

  private call(
    type: number,
    body: string | Buffer | LargePayload,
    limits: CallLimits,
    direct = false,
    code?: LargeCode,
  ): Call {
    const entry: Pending = {
      type,
      leavesLogs: type === types.check,
      direct,
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
    const isLarge = typeof body === 'object' && 'pieces' in body;
    const frame = isLarge ? frameHeader(type, this.nextId, body.length) : encodeFrame(type, this.nextId, body);
    const frameBytes = frame.length + (isLarge ? body.length : 0);
    if (frameBytes > maxFrameBytes) return refusal(`The request of ${frameBytes} bytes is too long.`);
    const id = this.nextId;
    this.nextId = id === maxId ? 1 : id + 1;
    this.pending.set(id, entry);
    if (type === types.run) this.sizes = 0;
    if (limits.onProgress !== undefined) {
      call.stop = () => {
        if (this.state === 'open' && !entry.answered) this.send(encodeFrame(types.stop, id, '{}'));
      };
    }
    if (this.state === 'closed') return call; // `ended` follows.
    entry.timer = this.clock.setTimer(limits.timeoutMs, () => this.expire(id, entry));
    if (direct) this.runs?.socket.write(frame);
    else if (isLarge) this.sendLarge(frame, body);
    else this.send(frame);
    if (code !== undefined) this.sendCode(id, code);
    return call;
  }

  /** A frame of the socket for runs: only answers to runs that went there. */
  private runsFrame(type: number, id: number, payload: Buffer, lengthBytes: number): void {
    if (type === types.size && this.state === 'open') return this.sizeFrame(payload);
    const isAnswer = type === types.result || type === types.error || type === types.log;
    const isAsked = this.pending.get(id)?.direct ?? this.forgotten.has(id);
    if (isAnswer && isAsked) this.frame(type, id, payload, lengthBytes);
    else this.break(`it sent a frame of type ${type} by the socket for runs`);
  }

  /** Writes a frame. While other runs are under way, frames of one turn of the event loop are written together. */
  private send(frame: Buffer): void {
    if (this.pending.size <= 1 && this.unsent.length === 0) {
      this.socket.write(frame);
      return;
    }
    if (this.unsent.push(frame) > 1) return;
    this.clock.defer(() => {
      if (this.unsent.length > 0) this.socket.write(Buffer.concat(this.unsent.splice(0)));
    });
  }

  /** Writes large code behind its init. */
  private sendCode(id: number, code: LargeCode): void {
    for (const frame of this.unsent.splice(0)) this.socket.write(frame);
    const { bytes } = code;
    for (let at = 0; at < bytes.length; at += codeFrameBytes) {
      const piece = bytes.subarray(at, at + codeFrameBytes);
      const isLast = at + piece.length === bytes.length;
      this.socket.write(frameHeader(types.code, id, piece.length));
      this.socket.write(piece, isLast ? () => code.passed() : undefined);
    }
  }

  /** Writes a frame in pieces, behind those that wait. */
  private sendLarge(header: Buffer, { pieces, written }: LargePayload): void {
    for (const frame of this.unsent.splice(0)) this.socket.write(frame);
    this.socket.write(header);
    const last = pieces.length - 1;
    for (const [at, piece] of pieces.entries()) this.socket.write(piece, at === last ? written : undefined);
  }

  private answer(type: number, id: number, payload: Buffer, lengthBytes: number): void {
    const entry = this.pending.get(id);
    if (!entry || entry.answered) {
      if (this.forgotten.get(id) === 'awaited') this.forgotten.set(id, 'answered');
      else this.break(`it answered ${id}, which was not asked`);
      return;
    }
    if (entry.type === types.unload && this.runs?.reader.isWithinFrame) {
      this.break('the action left part of a frame in the socket for runs');
      return;
    }
    entry.answered = true;
    entry.timer?.cancel();
    entry.timer = undefined;
    if (entry.type === types.init) entry.leavesLogs = type === types.result;
    this.unlogged.push(entry);
    const outcome = this.outcomeOf(entry, type, payload, lengthBytes);
    const { inputSize } = entry;
    entry.outcome.resolve(outcome.type === 'result' && inputSize !== undefined ? { ...outcome, inputSize } : outcome);
  }

  /** Takes the size of the input of the only run under way; a report may cross the end of its run. The last one counts. */
  private sizeFrame(payload: Buffer): void {
    this.sizes += 1;
    if (this.sizes > maxSizes) return this.break(`it reported more than ${maxSizes} sizes of an input`);
    const size = toldSize(payload);
    if (size === undefined) return this.break('it reported a size of an input that is no number of at least 0');
    const asked = [...this.pending.values()].filter((one) => one.type === types.run && !one.answered);
    const [run] = asked;
    if (run !== undefined && asked.length === 1) run.inputSize = size;
  }

  private logFrame(id: number, payload: Buffer): void {
    const entry = this.pending.get(id);
    const told = payload.length > emptyJson.length ? (parseJson(payload.toString()) as LogPayload) : undefined;
    if (!this.readsRuns) this.takesRuns = this.runs !== undefined && told?.direct === true;
    if (!entry?.answered) {
      if (this.forgotten.get(id) !== 'answered') this.break(`it ended the logs of ${id}, which was not answered`);
      this.forgotten.delete(id);
      return;
    }
    this.pending.delete(id);
    entry.ended = true;
    if (entry.type === types.run) this.busyMs += runTimeMs(told, this.clock.monotonicMs() - entry.sentMs);
    // Output that was flushed before the frame is readable now and is read before deferred work.
    if (entry.leavesLogs) this.finishLogs(entry);
    else if (this.printed.push(entry) === 1) {
      this.onceRead(() => {
        for (const each of this.printed.splice(0)) this.finishLogs(each);
      });
    }
  }

  /** Handles the launcher's only report. `ready` may come before or after the runtime's hello. */
  private launcherFrame(text: string): void {
    if (this.reported || (this.greeted && text !== 'ready')) return this.break('it sent a frame of the launcher');
    this.reported = true;
    this.events.launcher(text);
  }

  private helloFrame(payload: Buffer): void {
    const hello = parseJson(payload.toString()) as HelloPayload;
    if (this.greeted || hello?.version !== protocolVersion) {
      this.break(`it sent the hello ${payload.toString('utf8', 0, 200)}`);
      return;
    }
    this.greeted = true;
    if (Number.isSafeInteger(hello.pid)) this.pid = hello.pid as number;
    this.cudaContext = cudaContextWays.find((one) => one === hello.cuda);
    this.unfit = typeof hello.unfit === 'string' ? hello.unfit : undefined;
    this.takesParts = hello.parts === true;
    this.runsTakeParts = hello.directParts === true;
    this.takesCode = hello.codeFrames === true;
    this.canBatch = hello.batch === true;
    this.canUnload = hello.unload === true;
    this.endsLate = hello.endsLate === true;
    this.events.hello();
  }

  private outcomeOf(entry: Pending, type: number, payload: Buffer, lengthBytes: number): CallOutcome {
    const takesParts = this.takesParts && (!this.readsRuns || this.runsTakeParts);
    if (type === types.error) {
      const text = payload.toString();
      return takesParts ? { type: 'error', error: text, body: '' } : errorOutcome(text);
    }
    if (entry.type === types.init) return loadOutcome(payload, this.clock.monotonicMs() - entry.sentMs);
    if (entry.type !== types.run) return { type: 'ok' };
    const { maxResultBytes, truncationBytes } = entry.limits;
    if (lengthBytes > maxResultBytes) return oversizeOutcome(payload, truncationBytes, lengthBytes);
    const { onResult } = entry.limits;
    if (onResult !== undefined) return takenOutcome(payload, onResult);
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

  /** Calls `run` when all data that is readable now has been read. */
  private onceRead(run: () => void): void {
    // Streams that were held back are read in the next turn of the event loop, those that this turn first looks at, too.
    const caughtUp = (): void => this.clock.defer(() => this.clock.defer(run));
    if (this.logs.catchUp()) caughtUp();
    else this.clock.defer(() => (this.logs.catchUp() ? caughtUp() : run()));
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

/** A call that ends with an error before a frame is sent. */
function refusal(error: string): Call {
  return { outcome: Promise.resolve({ type: 'error', error, body: '' }), logs: Promise.resolve([]) };
}

import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { mostSmallBytes } from '@gpuwhisk/common/entities/large-code';
import { gather } from '@gpuwhisk/common/gathered-bytes';
import { nextPiece } from '@gpuwhisk/common/system/pieces';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Call, CallLimits, InitRequest, CallOutcome, LostOutcome, RunRequest } from '../container-factory.js';
import { errorOutcome, oversizeOutcome, resultOutcome, takenOutcome } from './call-outcome.js';
import { deferred, refused } from './connection.js';
import { largeJson } from './large-init.js';
import type { LargePayload } from './large-init.js';
import type { Connection, Deferred } from './connection.js';
import { maxFrameBytes } from './frames.js';
import type { LogCollector } from './log-collector.js';

const port = 8080;
const retryMs = 50;
const ok = 200;
const unavailable = 503;
/** Time without new output after which sentinels are no longer awaited, ms. */
const logIdleMs = 2000;

interface Answer {
  status: number;
  /** The beginning of the body, up to the wanted length. */
  head: Buffer;
  bytes: number;
}

class Refused extends Error {}
class TimedOut extends Error {}

/** OpenWhisk's `/init` and `/run` over HTTP, with a connection for each request. */
export class HttpConnection implements Connection {
  private readonly lost: Deferred<CallOutcome> = deferred();
  private readonly finishers = new Set<() => void>();
  private readonly aborts = new AbortController();
  private gone = false;
  readonly pid = undefined;
  readonly canBatch = false;
  readonly canUnload = false;
  readonly endsLate = false;
  busyMs = 0;

  constructor(
    private readonly host: string,
    private readonly logs: LogCollector,
    private readonly clock: Clock,
    /** Called when the runtime has ended or broken the protocol: the container must not be used again. */
    private readonly broken: (reason: string) => void,
  ) {}

  init(request: InitRequest, limits: CallLimits): Call {
    this.logs.limit(limits.logLimitBytes);
    const outcome = this.load(request, limits);
    return { outcome, logs: outcome.then((reached) => (reached.type === 'ok' ? [] : this.collect(reached))) };
  }

  run(request: RunRequest, limits: CallLimits): Call {
    this.logs.limit(limits.logLimitBytes);
    const startedMs = this.clock.monotonicMs();
    const deadlineMs = startedMs + limits.timeoutMs;
    const outcome = this.attempt('/run', JSON.stringify(request), limits, deadlineMs).then((reached) => {
      this.busyMs += this.clock.monotonicMs() - startedMs;
      if (reached !== 'refused') return reached;
      this.broken('it refuses connections');
      return this.lost.promise;
    });
    return { outcome, logs: outcome.then((reached) => this.collect(reached)) };
  }

  unload(): Call {
    return refused('Runtimes that speak HTTP cannot unload.');
  }

  check(): Call {
    return refused('Runtimes that speak HTTP cannot be checked.');
  }

  printedSince(from: number): string[] {
    return this.logs.since(from);
  }

  close(): void {
    this.aborts.abort();
  }

  ended(lost: LostOutcome): void {
    this.gone = true;
    this.aborts.abort();
    this.lost.resolve(lost);
  }

  drained(): void {
    for (const finish of this.finishers) finish();
  }

  private async load(request: InitRequest, limits: CallLimits): Promise<CallOutcome> {
    const deadlineMs = this.clock.monotonicMs() + limits.timeoutMs;
    const { large, ...rest } = request;
    const body =
      large === undefined
        ? JSON.stringify({ value: rest })
        : await largeJson(this.clock, rest, ['value'], large, rest.binary);
    for (;;) {
      const outcome = await this.attempt('/init', body, limits, deadlineMs);
      if (outcome !== 'refused') return outcome;
      if (this.clock.monotonicMs() + retryMs >= deadlineMs) return { type: 'timeout' };
      await new Promise<void>((resolve) => this.clock.setTimer(retryMs, resolve));
      if (this.aborts.signal.aborted) return this.lost.promise;
    }
  }

  private async attempt(
    path: string,
    body: string | LargePayload,
    limits: CallLimits,
    deadlineMs: number,
  ): Promise<CallOutcome | 'refused'> {
    if (this.aborts.signal.aborted) return this.lost.promise;
    try {
      const wantedBytes = Math.max(limits.maxResultBytes, limits.truncationBytes);
      const answer = await this.post(path, body, wantedBytes, deadlineMs - this.clock.monotonicMs());
      return outcomeOf(answer, path === '/init', limits);
    } catch (error) {
      if (error instanceof Refused) return 'refused';
      if (error instanceof TimedOut) return { type: 'timeout' };
      this.broken(`its connection failed: ${(error as Error).message}`);
      return this.lost.promise;
    }
  }

  private post(path: string, body: string | LargePayload, wantedBytes: number, timeoutMs: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const payload = typeof body === 'string' ? Buffer.from(body) : body;
      const headers = { 'content-type': 'application/json', 'content-length': payload.length };
      const signal = this.aborts.signal;
      const request = httpRequest({ host: this.host, port, path, method: 'POST', headers, agent: false, signal });
      const timer: Timer = this.clock.setTimer(Math.max(1, timeoutMs), () => {
        reject(new TimedOut());
        request.destroy();
      });
      const finish = (settle: () => void): void => {
        timer.cancel();
        settle();
      };
      request.on('error', (error: NodeJS.ErrnoException) =>
        finish(() => reject(error.code === 'ECONNREFUSED' ? new Refused() : error)),
      );
      request.on('response', (response) => {
        readAnswer(response, wantedBytes, this.clock).then(
          (answer) => finish(() => resolve(answer)),
          (error: Error) => finish(() => reject(error)),
        );
      });
      if (Buffer.isBuffer(payload)) request.end(payload);
      else {
        for (const piece of payload.pieces) request.write(piece);
        request.end(payload.written);
      }
    });
  }

  /** The log lines up to the sentinels, or all lines so far after an error or a loss, when sentinels may be missing. */
  private collect(outcome: CallOutcome): Promise<string[]> {
    const answered = outcome.type === 'result' || outcome.type === 'oversize';
    if (this.gone || (this.logs.complete && answered)) return Promise.resolve(this.logs.cut());
    const lines = deferred<string[]>();
    const finish = (): void => {
      this.finishers.delete(finish);
      this.logs.whenComplete(undefined);
      lines.resolve(this.logs.cut());
    };
    this.finishers.add(finish);
    if (outcome.type === 'lost') return lines.promise; // `drained` follows.
    if (!answered) {
      this.clock.defer(finish);
      return lines.promise;
    }
    this.logs.whenComplete(finish);
    const startMs = this.clock.monotonicMs();
    const check = (): void => {
      if (!this.finishers.has(finish)) return;
      const idleMs = this.clock.monotonicMs() - Math.max(startMs, this.logs.lastReadMs);
      if (idleMs >= logIdleMs) finish();
      else this.clock.setBackgroundTimer(logIdleMs - idleMs + 1, check);
    };
    this.clock.setBackgroundTimer(logIdleMs, check);
    return lines.promise;
  }
}

async function readAnswer(response: IncomingMessage, wantedBytes: number, clock: Clock): Promise<Answer> {
  const pieces: Buffer[] = [];
  let kept = 0;
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxFrameBytes) throw new Error(`its answer is longer than ${maxFrameBytes} bytes`);
    if (kept >= wantedBytes) continue;
    const piece = chunk.subarray(0, wantedBytes - kept);
    gather(pieces, piece);
    kept += piece.length;
  }
  return { status: response.statusCode ?? 0, head: await joined(pieces, kept, clock), bytes };
}

/** Pieces as a whole; of many, one a turn of the event loop is copied. */
async function joined(pieces: readonly Buffer[], length: number, clock: Clock): Promise<Buffer> {
  if (length <= mostSmallBytes) return Buffer.concat(pieces);
  const whole = Buffer.allocUnsafe(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
    await nextPiece(clock);
  }
  return whole;
}

function outcomeOf(answer: Answer, init: boolean, limits: CallLimits): CallOutcome {
  if (answer.status === unavailable) return { type: 'unavailable' };
  if (answer.status === ok && init) return { type: 'ok' };
  if (answer.status === ok && answer.bytes > limits.maxResultBytes) {
    return oversizeOutcome(answer.head, limits.truncationBytes, answer.bytes);
  }
  if (answer.status === ok && limits.onResult !== undefined) return takenOutcome(answer.head, limits.onResult);
  const text = answer.head.toString();
  return answer.status === ok ? resultOutcome(text, answer.bytes) : errorOutcome(text);
}

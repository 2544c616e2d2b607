import { isDeepStrictEqual } from 'node:util';
import { activationDocument } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { CallOutcome, RunRequest } from '@gpuwhisk/invoker/containers/container-factory';
import { comparable, needsGpu } from './ledger-entries.js';
import { epochMs } from './simulated-clock.js';
import type { Call, Life, Run } from './ledger-entries.js';
import { recordProblem } from './record-problem.js';

/** Longest time by which a blocking answer, or the start mark of a blocking run, may precede its data on disk, ms. */
const graceMs = 50;
/** How long a caller may wait beyond the requested time: the disk's latency, ms. */
const answerSlackMs = 200;
/** How long a run may exceed its limit, ms. */
const limitSlackMs = 50;
/** Time that records may wait for the writer's next try after the store recovers, ms. */
const storeRecoveryMs = 6000;

/** All answers to callers and all observations, and the checks that the two agree. */
export class Ledger {
  readonly violations: string[] = [];
  readonly trace: string[] = [];
  readonly calls = new Map<string, Call>();
  readonly byActivation = new Map<string, Call>();
  readonly records = new Map<string, StoredDocument>();
  readonly lives: Life[] = [];
  /** Number of log entries that flipped bits may have damaged: each excuses one lost message or mark. */
  excusedLosses = 0;
  /** Loads of code into a container that had other code before. */
  reloads = 0;
  /** Placements that the agent refused, and requests that ran in batches of several. */
  gpuRefusals = 0;
  batched = 0;
  private readonly recordedMs = new Map<string, number>();
  private readonly runs = new Map<string, Run[]>();
  private readonly marked = new Map<string, Set<number>>();
  private readonly openRuns = new Set<Run>();
  private readonly openCalls = new Set<Call>();
  private storeTroubleUntilMs = -Infinity;

  constructor(private readonly nowMs: () => number) {}

  note(text: string): void {
    this.trace.push(`${this.nowMs().toFixed(2).padStart(10)} ${text}`);
  }

  /** Notes a broken promise unless `holds` is true. */
  check(holds: boolean, promise: string): void {
    if (holds) return;
    this.note(`BROKEN: ${promise}`);
    this.violations.push(promise);
  }

  get life(): number {
    return this.lives.length - 1;
  }

  /** Number of callers that wait for an answer. */
  get waitingCalls(): number {
    return this.openCalls.size;
  }

  get runCount(): number {
    return [...this.runs.values()].reduce((sum, runs) => sum + runs.length, 0);
  }

  /** The disk fails from some moment of this life on. */
  diskFails(): void {
    const life = this.lives[this.life];
    if (life) life.diskFailed = true;
  }

  startLife(): void {
    this.lives.push({ diskFailed: false, storeWasIll: false });
    this.note(`life ${this.life} starts`);
  }

  /** Ends the life with its process: no caller waits and no code runs. */
  endLife(how: string): void {
    const life = this.lives[this.life];
    if (life) {
      life.endedMs = this.nowMs();
      life.storeWasIll = !this.storeIsWell();
    }
    this.openCalls.clear();
    this.openRuns.clear();
    this.note(`life ${this.life} ends: ${how}`);
  }

  /** Notes that the store is failing or slow at this moment. */
  storeTrouble(): void {
    this.storeTroubleUntilMs = this.nowMs() + storeRecoveryMs;
  }

  asked(call: Call): void {
    this.calls.set(call.transactionId, call);
    this.openCalls.add(call);
    const how = call.blocking ? `blocking ${call.waitMs} ms` : 'non-blocking';
    this.note(`${call.transactionId} asks for ${call.namespace}: ${call.action.name} ${call.action.version}, ${how}`);
  }

  /** Notes that the dispatcher put a call's message on the bus. */
  sent(message: ActivationMessage): void {
    const call = this.calls.get(message.transid[0]);
    if (call === undefined) return;
    call.activationId = message.activationId;
    this.byActivation.set(message.activationId, call);
  }

  answered(call: Call, answer: NonNullable<Call['answer']>): void {
    if (!this.openCalls.delete(call)) return;
    call.answer = answer;
    this.note(`${call.transactionId} is ${answer.type}${answer.type === 'refused' ? ` ${answer.status}` : ''}`);
    if (answer.type === 'refused' && answer.status === 429) {
      const isFinal = needsGpu(call) || call.activationId === undefined;
      this.check(isFinal, `${call.transactionId} was refused with 429 and sent all the same`);
    }
    if (answer.type === 'completed') this.compareAnswer(call);
  }

  markedStart(activationId: string): void {
    const lives = this.marked.get(activationId) ?? new Set();
    this.marked.set(activationId, lives.add(this.life));
  }

  /** The activations of a run; several for a batch. */
  activationsOf({ value, batch, activation_id }: RunRequest): string[] {
    if (batch === undefined || !Array.isArray(value)) return [activation_id];
    return value.map((one) => this.calls.get(`t${String((one as JsonObject).serial)}`)?.activationId ?? 'unknown');
  }

  /** Notes that a run reached its code. */
  runStarted(request: RunRequest): void {
    const ids = this.activationsOf(request);
    for (const id of ids) this.activationStarted(id);
    if (request.batch === undefined) return;
    this.batched += ids.length;
    const calls = ids.map((id) => this.byActivation.get(id));
    const of = (part: (call: Call) => string): number => new Set(calls.map((call) => call && part(call))).size;
    this.check(of(({ subject }) => subject) === 1, `a batch has requests of ${of(({ subject }) => subject)} subjects`);
    this.check(of(({ namespace }) => namespace) === 1, 'a batch has requests of several namespaces');
    this.check(of(({ action }) => `${action.name} ${action.version}`) === 1, 'a batch has requests of several actions');
  }

  private activationStarted(id: string): void {
    const name = this.nameOf(id);
    const earlier = this.runs.get(id) ?? [];
    const run: Run = { activationId: id, life: this.life, startedMs: this.nowMs(), limitMs: Infinity };
    this.note(`${name} runs`);
    this.check(!this.records.has(id), `${name} ran though it was recorded`);
    this.check(!this.wasTurnedAway(id), `${name} ran though its caller was told that it does not`);
    this.check(this.marked.get(id)?.has(this.life) === true, `${name} ran without a start mark`);
    const last = earlier.at(-1);
    if (last) this.check(this.mayRunAgain(id, last), `${name} ran twice`);
    this.runs.set(id, [...earlier, run]);
    this.openRuns.add(run);
  }

  runLimited(activationId: string, limitMs: number): void {
    const run = this.openRun(activationId);
    if (run) run.limitMs = limitMs;
  }

  runEnded(activationId: string, outcome: CallOutcome, cutShort: boolean): void {
    const run = this.openRun(activationId);
    if (run === undefined) return;
    this.openRuns.delete(run);
    run.outcome = outcome;
    run.cutShort = cutShort;
    this.note(`${this.nameOf(activationId)} ends its run: ${outcome.type}`);
  }

  /** Notes that the store has a record with this content. */
  recorded(document: StoredDocument): void {
    const id = String(document.activationId);
    const known = this.records.get(id);
    if (known !== undefined) {
      this.check(isDeepStrictEqual(known, document), `the record of ${this.nameOf(id)} changed`);
      return;
    }
    this.records.set(id, document);
    this.recordedMs.set(id, Math.min(this.nowMs(), this.endedMs(document)));
    const { statusCode, result } = document.response as JsonObject;
    this.note(`${this.nameOf(id)} is recorded: ${String(statusCode)} ${JSON.stringify(result ?? null)}`);
    const call = this.byActivation.get(id);
    if (call === undefined) {
      this.check(false, `a record of an activation that nobody sent: ${id}`);
      return;
    }
    const problem = recordProblem(document, {
      call,
      runs: (this.runs.get(id) ?? []).filter(({ life }) => life === this.life),
      markedEarlier: [...(this.marked.get(id) ?? [])].some((life) => life < this.life),
    });
    this.check(problem === undefined, `the record of ${call.transactionId}: ${problem}`);
    if (call.answer?.type === 'completed') {
      this.compareAnswer(call);
      const lateMs = this.nowMs() - call.answer.atMs;
      if (call.life === this.life && this.storeIsWell()) {
        this.check(lateMs <= graceMs, `${call.transactionId} was recorded ${lateMs} ms after its answer`);
      }
    }
  }

  /** Whether a record must exist: it was stored, and less than `ttlMs` have passed (undefined: no limit). */
  isRecordDue(id: string, ttlMs: number | undefined): boolean {
    const recordedMs = this.recordedMs.get(id);
    return recordedMs !== undefined && this.nowMs() - recordedMs < (ttlMs ?? Infinity);
  }

  /** Checks the promises about time, which hold at any moment. */
  checkOverdue(): void {
    const nowMs = this.nowMs();
    for (const call of this.openCalls) {
      const allowedMs = (call.blocking ? call.waitMs : 0) + answerSlackMs;
      this.check(nowMs - call.sentMs <= allowedMs, `${call.transactionId} is left without an answer`);
    }
    for (const run of this.openRuns) {
      const name = this.nameOf(run.activationId);
      this.check(nowMs - run.startedMs <= run.limitMs + limitSlackMs, `the run of ${name} outlives its time limit`);
    }
  }

  /** Checks the promises about the final state, after faults have stopped and all work has ended. */
  checkEnd(): void {
    this.check(this.openCalls.size === 0, 'callers still wait');
    this.check(this.openRuns.size === 0, 'activations still run');
    for (const call of this.calls.values()) {
      if (call.answer?.type !== 'accepted' && call.answer?.type !== 'completed') continue;
      if (this.records.has(call.activationId ?? '')) continue;
      const excused = this.answerOutranItsRecord(call) || this.excuseOneLoss();
      this.check(excused, `${call.transactionId} was ${call.answer.type} and has no record`);
    }
  }

  /** End of an activation by its record, on the clock of `nowMs`. */
  private endedMs({ start, end }: StoredDocument): number {
    return Math.max(Number(start), Number(end)) - epochMs;
  }

  private openRun(activationId: string): Run | undefined {
    const run = this.runs.get(activationId)?.at(-1);
    return run !== undefined && this.openRuns.has(run) ? run : undefined;
  }

  /** The call of an activation, for messages. */
  nameOf(activationId: string): string {
    return this.byActivation.get(activationId)?.transactionId ?? activationId;
  }

  private storeIsWell(): boolean {
    return this.nowMs() > this.storeTroubleUntilMs;
  }

  /** Whether a function's caller was told that no GPU can be had. That answer is final unless the log failed. */
  private wasTurnedAway(id: string): boolean {
    const call = this.byActivation.get(id);
    if (call === undefined || !needsGpu(call) || call.answer?.type !== 'refused') return false;
    const { endedMs = Infinity, diskFailed = false } = this.lives[call.life] ?? {};
    // The end may be written to disk a little after the answer.
    return !diskFailed && endedMs - call.answer.atMs > graceMs;
  }

  private excuseOneLoss(): boolean {
    return this.excusedLosses-- > 0;
  }

  private mayRunAgain(id: string, last: Run): boolean {
    const call = this.byActivation.get(id);
    if (call === undefined || last.life === this.life) return false;
    if (parameterValue(call.action.annotations, 'idempotent') === true) return true;
    const { endedMs = Infinity, diskFailed = false } = this.lives[last.life] ?? {};
    // The start mark of a blocking run is not awaited.
    if (call.blocking && (diskFailed || endedMs - last.startedMs <= graceMs)) return true;
    return this.excuseOneLoss();
  }

  private compareAnswer(call: Call): void {
    const record = this.records.get(call.activationId ?? '');
    if (record === undefined || call.answer?.type !== 'completed') return;
    const same = isDeepStrictEqual(comparable(record), comparable(activationDocument(call.answer.activation, 0)));
    const excused = same || this.answerOutranItsRecord(call) || this.excuseOneLoss();
    this.check(excused, `${call.transactionId} was answered otherwise than it was recorded`);
  }

  /**
   * Whether a record was lost because the process ended shortly after a completed answer, or while the store failed.
   */
  private answerOutranItsRecord(call: Call): boolean {
    const endedMs = this.lives[call.life]?.endedMs;
    if (call.answer?.type !== 'completed' || endedMs === undefined) return false;
    return endedMs - call.answer.atMs <= graceMs || this.lives[call.life]?.storeWasIll === true;
  }
}

import type { CudaContextKept } from '@gpuwhisk/common/prewarmer';
import type {
  Call,
  CallLimits,
  Container,
  ContainerSpec,
  InitRequest,
  CallOutcome,
  LostOutcome,
  RunRequest,
  SharedModules,
} from '../container-factory.js';
import { deferred, refused } from './connection.js';
import type { Connection } from './connection.js';

/** Compares a container's processes, as the kernel shows them, with their state before the first action was loaded. */
export interface ProcessStateCheck {
  /**
   * Resolves with the kinds of state that differ from the first observation, in words; empty if none differs. A process that
   * is not at rest has 250 ms to come to rest. Never rejects.
   */
  differences(): Promise<string[]>;
}

/** The processes of a container, with the operations that start, stop and limit them. */
export interface ContainerBody {
  readonly hostPid: number | undefined;
  /** Freezes the processes. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Begins to end the processes, once; the container's `ended` is called when they have ended. */
  kill(): void;
  giveWay(gives: boolean): Promise<void>;
  processorMs(): Promise<number | undefined>;
  /** As in Container. */
  fits?(memoryMiB: number): boolean;
  limitMemory?(memoryMiB: number): boolean;
  /** As Container.memoryMiB. */
  memoryMiB?(): Promise<number | undefined>;
  /** Passes code to the runtime by `init`, after a build if the code needs one. */
  load(request: InitRequest, limits: CallLimits, init: (request: InitRequest) => Call): Call;
  /** Frees the container's resources on the host, after its processes have ended. */
  release(): Promise<void>;
}

/** Identity and properties of a container, set at its creation. */
export interface ContainerIdentity {
  id: string;
  spec: ContainerSpec;
  /** Time of creation, epoch ms. */
  sinceMs: number;
  /**
   * Whether a proxy unloads functions, from outside of their process; its report is trusted. Other unloads count only if the
   * check of `confirmUnloadsBy` confirms them.
   */
  proxied: boolean;
  /** The MSContainer whose PID namespace the container shares; undefined if the container has its own. */
  msContainer: string | undefined;
  /** As Container.sharedModules. */
  sharedModules?: SharedModules | undefined;
}

/** A container that calls its runtime through a connection. Decides which calls are allowed in which state. */
export class ConnectedContainer implements Container {
  readonly id: string;
  spec: ContainerSpec;
  readonly msContainer: string | undefined;
  readonly sinceMs: number;
  readonly sharedModules: SharedModules | undefined;
  unloads = 0;
  isCopy?: boolean;
  restoredMs?: number;
  private readonly proxied: boolean;
  /** Set by the factory at the hello. */
  runtimeMs: number | undefined;
  readonly exited: Promise<void>;
  private readonly exit = deferred<void>();
  private readonly destroyed = deferred<void>();
  private connection: Connection | undefined;
  private stateCheck: ProcessStateCheck | undefined;
  private state: 'live' | 'paused' | 'ending' | 'ended' = 'live';
  private initialized = false;
  private busy = 0;

  constructor(
    { id, spec, msContainer, sinceMs, proxied, sharedModules }: ContainerIdentity,
    private readonly body: ContainerBody,
  ) {
    this.proxied = proxied;
    this.id = id;
    this.spec = spec;
    this.msContainer = msContainer;
    this.sinceMs = sinceMs;
    this.sharedModules = sharedModules;
    this.exited = this.exit.promise;
  }

  /** Sets the connection to the runtime; once, before the container is used. */
  connect(connection: Connection): void {
    this.connection = connection;
  }

  /** Whether the runtime itself reports unloads, so that a ProcessStateCheck has to confirm them. */
  get needsStateCheck(): boolean {
    return !this.proxied && (this.connection?.canUnload ?? false);
  }

  /** Sets the check that confirms unloads; before any code is loaded. */
  confirmUnloadsBy(check: ProcessStateCheck | undefined): void {
    this.stateCheck = check;
  }

  /** Called when the processes have ended; `usedMiB`: the most memory that they held, if known. */
  ended(oomKilled: boolean, usedMiB?: number): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.connection?.ended(this.lostOutcome(oomKilled, usedMiB));
    this.exit.resolve();
    this.body.release().then(this.destroyed.resolve, this.destroyed.resolve);
  }

  private lostOutcome(oomKilled: boolean, usedMiB: number | undefined): LostOutcome {
    const { gpu, memoryMiB: limitMiB } = this.spec;
    const isTold = oomKilled && gpu !== undefined;
    return {
      type: 'lost',
      oomKilled,
      ...(isTold && { memory: { limitMiB, ...(usedMiB !== undefined && { usedMiB }) } }),
    };
  }

  /** Called when all output has been read. */
  drained(): void {
    this.connection?.drained();
  }

  init(request: InitRequest, limits: CallLimits): Call {
    if (this.initialized) return refused(`Container ${this.id} cannot be initialized more than once.`);
    this.initialized = true;
    return this.begin((connection) => this.body.load(request, limits, (ready) => connection.init(ready, limits)));
  }

  run(request: RunRequest, limits: CallLimits): Call {
    return this.begin((connection) => connection.run(request, limits));
  }

  get pid(): number | undefined {
    return this.connection?.pid;
  }

  get cudaContext(): CudaContextKept | undefined {
    return this.connection?.cudaContext;
  }

  get unfit(): string | undefined {
    return this.connection?.unfit;
  }

  get hostPid(): number | undefined {
    return this.body.hostPid;
  }

  get canBatch(): boolean {
    return this.connection?.canBatch ?? false;
  }

  get canUnload(): boolean {
    return (this.connection?.canUnload ?? false) && (this.proxied || this.stateCheck !== undefined);
  }

  get endsLate(): boolean {
    return this.connection?.endsLate ?? false;
  }

  unload(thorough: boolean, limits: CallLimits): Call {
    if (!this.canUnload) return refused(`Container ${this.id} cannot unload.`);
    if (this.busy > 0) return refused(`Container ${this.id} cannot unload while it runs.`);
    const told = this.begin((connection) => connection.unload(thorough, limits));
    const call = { ...told, outcome: this.confirmed(told.outcome) };
    // A rejection is the caller's to handle.
    void call.outcome.then(
      (outcome) => {
        if (outcome.type !== 'ok') return;
        this.initialized = false;
        this.unloads++;
      },
      () => undefined,
    );
    return call;
  }

  /** The runtime's outcome of an unload, or an error if the process state differs. */
  private async confirmed(told: Promise<CallOutcome>): Promise<CallOutcome> {
    const outcome = await told;
    if (outcome.type !== 'ok' || this.stateCheck === undefined) return outcome;
    const found = await this.stateCheck.differences();
    if (found.length === 0) return outcome;
    const error = `The action changed the state of the process: ${found.join(', ')}.`;
    return { type: 'error', error, body: JSON.stringify({ error }) };
  }

  check(limits: CallLimits): Call {
    if (!this.canUnload) return refused(`Container ${this.id} cannot be checked.`);
    if (this.busy > 0) return refused(`Container ${this.id} cannot be checked while it runs.`);
    return this.begin((connection) => connection.check(limits), 0);
  }

  printedSince(from: number): string[] {
    return this.connection?.printedSince(from) ?? [];
  }

  get busyMs(): number {
    return this.connection?.busyMs ?? 0;
  }

  async pause(): Promise<void> {
    if (this.state !== 'live') return;
    if (this.busy > 0) throw new Error(`Container ${this.id} cannot be paused while it runs.`);
    this.state = 'paused';
    try {
      await this.body.pause();
    } catch (error) {
      this.thawed();
      throw error;
    }
  }

  async resume(): Promise<void> {
    if (this.state !== 'paused') return;
    await this.body.resume();
    this.thawed();
  }

  giveWay(gives: boolean): Promise<void> {
    return this.body.giveWay(gives);
  }

  processorMs(): Promise<number | undefined> {
    return this.body.processorMs();
  }

  fits(memoryMiB: number): boolean {
    return this.body.fits?.(memoryMiB) ?? false;
  }

  resize(memoryMiB: number): boolean {
    if (this.body.limitMemory?.(memoryMiB) !== true) return false;
    this.spec = { ...this.spec, memoryMiB };
    return true;
  }

  async memoryMiB(): Promise<number | undefined> {
    return this.body.memoryMiB?.();
  }

  destroy(): Promise<void> {
    if (this.state !== 'ending' && this.state !== 'ended') {
      this.state = 'ending';
      this.connection?.close();
      this.body.kill();
    }
    return this.destroyed.promise;
  }

  /** Ends a thaw; the container may have ended meanwhile. */
  private thawed(): void {
    if (this.state === 'paused') this.state = 'live';
  }

  /** Starts a call if the container's state allows it. `slots`: runs that the call counts as. */
  private begin(start: (connection: Connection) => Call, slots = 1): Call {
    if (!this.connection) return refused(`Container ${this.id} has not started.`);
    if (this.state === 'paused') return refused(`Container ${this.id} is paused.`);
    if (this.busy >= this.spec.concurrency) return refused(`Container ${this.id} runs all it may run at once.`);
    const call = start(this.connection);
    this.busy += slots;
    const done = (): void => {
      this.busy -= slots;
    };
    call.outcome.then(done, done);
    return call;
  }
}

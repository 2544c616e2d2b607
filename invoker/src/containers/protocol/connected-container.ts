import type {
  Call,
  CallLimits,
  Container,
  ContainerSpec,
  InitRequest,
  CallOutcome,
  RunRequest,
} from '../container-factory.js';
import { deferred, refused } from './connection.js';
import type { Connection } from './connection.js';

/** Compares a container's processes, as the kernel shows them, with their state before the first action was loaded. */
export interface ProcessStateCheck {
  /**
   * Resolves with the kinds of state that differ from the first observation, in words; empty if none does. A process that
   * is not at rest is given 250 ms. Never rejects.
   */
  differences(): Promise<string[]>;
}

/** The processes of a container, and what starts, stops and limits them. */
export interface ContainerBody {
  readonly hostPid: number | undefined;
  /** Stops its processes from running. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Begins to end its processes, once; `ended` follows. */
  kill(): void;
  giveWay(gives: boolean): Promise<void>;
  processorMs(): Promise<number | undefined>;
  /** Gives code to the runtime by `init`, at once or once it is built. */
  load(request: InitRequest, limits: CallLimits, init: (request: InitRequest) => Call): Call;
  /** Frees what it held on the host, once its processes have ended. */
  release(): Promise<void>;
}

/** What a container is told to be. */
export interface ContainerIdentity {
  id: string;
  spec: ContainerSpec;
  /** Epoch ms. */
  sinceMs: number;
  /**
   * Whether its functions are unloaded by a proxy, from outside of their process, whose word is taken. Otherwise an unload
   * counts only where `confirmUnloadsBy` has confirmed it.
   */
  proxied: boolean;
  /** The MSContainer whose PID namespace it shares; undefined if it has one of its own. */
  msContainer: string | undefined;
}

/** A container whose runtime is spoken with by a connection: what may be asked of it in which state. */
export class ConnectedContainer implements Container {
  readonly id: string;
  readonly spec: ContainerSpec;
  readonly msContainer: string | undefined;
  readonly sinceMs: number;
  private readonly proxied: boolean;
  readonly exited: Promise<void>;
  private readonly exit = deferred<void>();
  private readonly destroyed = deferred<void>();
  private connection: Connection | undefined;
  private stateCheck: ProcessStateCheck | undefined;
  private state: 'live' | 'paused' | 'ending' | 'ended' = 'live';
  private initialized = false;
  private busy = 0;

  constructor(
    { id, spec, msContainer, sinceMs, proxied }: ContainerIdentity,
    private readonly body: ContainerBody,
  ) {
    this.proxied = proxied;
    this.id = id;
    this.spec = spec;
    this.msContainer = msContainer;
    this.sinceMs = sinceMs;
    this.exited = this.exit.promise;
  }

  /** Sets how the runtime is spoken with; once, before the container is used. */
  connect(connection: Connection): void {
    this.connection = connection;
  }

  /** Whether only its own runtime reports an unload, so that a ProcessStateCheck has to confirm it. */
  get needsStateCheck(): boolean {
    return !this.proxied && (this.connection?.canUnload ?? false);
  }

  /** Sets the check that confirms unloads; before any code is loaded. */
  confirmUnloadsBy(check: ProcessStateCheck | undefined): void {
    this.stateCheck = check;
  }

  /** Its processes have ended. */
  ended(oomKilled: boolean): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.connection?.ended(oomKilled);
    this.exit.resolve();
    this.body.release().then(this.destroyed.resolve, this.destroyed.resolve);
  }

  /** All that it printed has been read. */
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
    // What a refusal says is for the caller.
    void call.outcome.then(
      (outcome) => {
        if (outcome.type === 'ok') this.initialized = false;
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
    const error = `The action left what is seen from outside: ${found.join(', ')}.`;
    return { type: 'error', error, body: JSON.stringify({ error }) };
  }

  check(limits: CallLimits): Call {
    if (!this.canUnload) return refused(`Container ${this.id} cannot be checked.`);
    if (this.busy > 0) return refused(`Container ${this.id} cannot be checked while it runs.`);
    return this.begin((connection) => connection.check(limits), 0);
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

  destroy(): Promise<void> {
    if (this.state !== 'ending' && this.state !== 'ended') {
      this.state = 'ending';
      this.connection?.close();
      this.body.kill();
    }
    return this.destroyed.promise;
  }

  /** It may have ended meanwhile. */
  private thawed(): void {
    if (this.state === 'paused') this.state = 'live';
  }

  /** `slots`: how many of the runs that it may do at once the call stands for. */
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

import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Call, CallLimits, Container, ContainerSpec, InitRequest, RunRequest } from '../container-factory.js';
import type { Cgroups } from './cgroups.js';
import { deferred, refused } from './connection.js';
import type { Connection } from './connection.js';
import { commands, outOfMemorySignal } from './launcher.js';
import type { SandboxProcess } from './launcher.js';

const killWaitMs = 3000;

/** What a container is made of. */
export interface ContainerParts {
  id: string;
  spec: ContainerSpec;
  /** The MSContainer whose PID namespace it shares; undefined if it has one of its own. */
  msContainer: string | undefined;
  process: SandboxProcess;
  /** Whether the process is a launcher with the sandbox below it, or the runtime itself. */
  hasLauncher: boolean;
  cgroups: Cgroups;
  clock: Clock;
  /** Gives code to the runtime by `init`, at once or once it is built. */
  load(request: InitRequest, limits: CallLimits, init: (request: InitRequest) => Call): Call;
  /** Frees what the sandbox held on the host, once its processes have ended. */
  release(): Promise<void>;
}

/** A container whose processes are children of this one. */
export class ProcessContainer implements Container {
  readonly id: string;
  readonly spec: ContainerSpec;
  readonly msContainer: string | undefined;
  readonly sinceMs: number;
  readonly exited: Promise<void>;
  private readonly destroyed = deferred<void>();
  private connection: Connection | undefined;
  private state: 'live' | 'paused' | 'ending' | 'ended' = 'live';
  private initialized = false;
  private busy = 0;
  private frozen = false;

  constructor(private readonly parts: ContainerParts) {
    this.id = parts.id;
    this.spec = parts.spec;
    this.msContainer = parts.msContainer;
    this.sinceMs = parts.clock.now();
    const exited = deferred<void>();
    this.exited = exited.promise;
    const { child } = parts.process;
    let over = false;
    const end = (signal: NodeJS.Signals | null): void => {
      if (over) return;
      over = true;
      this.state = 'ended';
      this.connection?.ended(signal === outOfMemorySignal && parts.hasLauncher);
      exited.resolve();
      parts.process.socket.destroy();
      parts.release().then(this.destroyed.resolve, this.destroyed.resolve);
    };
    child.on('exit', (_, signal) => end(signal));
    // It could not be started at all; there is no exit then.
    child.on('error', () => end(null));
    child.on('close', () => this.connection?.drained());
  }

  /** Sets how the runtime is spoken with; once, before the container is used. */
  connect(connection: Connection): void {
    this.connection = connection;
  }

  init(request: InitRequest, limits: CallLimits): Call {
    if (this.initialized) return refused(`Container ${this.id} cannot be initialized more than once.`);
    this.initialized = true;
    return this.begin((connection) => this.parts.load(request, limits, (ready) => connection.init(ready, limits)));
  }

  run(request: RunRequest, limits: CallLimits): Call {
    return this.begin((connection) => connection.run(request, limits));
  }

  get pid(): number | undefined {
    return this.connection?.pid;
  }

  get hostPid(): number | undefined {
    return this.parts.process.child.pid;
  }

  get canBatch(): boolean {
    return this.connection?.canBatch ?? false;
  }

  get canUnload(): boolean {
    return this.connection?.canUnload ?? false;
  }

  get endsLate(): boolean {
    return this.connection?.endsLate ?? false;
  }

  unload(thorough: boolean, limits: CallLimits): Call {
    if (!this.canUnload) return refused(`Container ${this.id} cannot unload.`);
    if (this.busy > 0) return refused(`Container ${this.id} cannot unload while it runs.`);
    const call = this.begin((connection) => connection.unload(thorough, limits));
    // What a refusal says is for the caller.
    void call.outcome.then(
      (outcome) => {
        if (outcome.type === 'ok') this.initialized = false;
      },
      () => undefined,
    );
    return call;
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
    this.frozen = await this.parts.cgroups.freeze(this.id, true);
    if (!this.frozen) this.command(commands.pause, 'SIGSTOP');
  }

  async resume(): Promise<void> {
    if (this.state !== 'paused') return;
    if (this.frozen) await this.parts.cgroups.freeze(this.id, false);
    else this.command(commands.resume, 'SIGCONT');
    if (this.state === 'paused') this.state = 'live';
  }

  processorMs(): Promise<number | undefined> {
    return this.parts.cgroups.processorMs(this.id);
  }

  destroy(): Promise<void> {
    if (this.state !== 'ending' && this.state !== 'ended') {
      this.state = 'ending';
      this.connection?.close();
      this.kill();
      const { clock, process } = this.parts;
      // A launcher that does not do its work is killed; the sandbox's init dies with it.
      const timer = clock.setTimer(killWaitMs, () => process.child.kill('SIGKILL'));
      void this.exited.then(() => timer.cancel());
    }
    return this.destroyed.promise;
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

  private command(command: string, forGroup: NodeJS.Signals): void {
    if (this.parts.hasLauncher) this.parts.process.control?.write(command);
    else this.signalGroup(forGroup);
  }

  private kill(): void {
    if (this.parts.hasLauncher) this.parts.process.child.kill('SIGTERM');
    else this.signalGroup('SIGKILL');
  }

  /** Without a launcher the runtime leads a process group of its own. */
  private signalGroup(signal: NodeJS.Signals): void {
    const { pid } = this.parts.process.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

import type { Clock } from '@gpuwhisk/common/system/clock';
import { ConnectedContainer } from '../protocol/connected-container.js';
import type { ContainerBody, ContainerIdentity } from '../protocol/connected-container.js';
import { deferred } from '../protocol/connection.js';
import { FramedConnection } from '../protocol/framed-connection.js';
import { HttpConnection } from '../protocol/http-connection.js';
import type { LogCollector } from '../protocol/log-collector.js';
import type { RuntimeLaunch } from '../runtime-launch.js';
import type { Cgroups } from '../sandbox/cgroups.js';
import { commands, outOfMemorySignal } from '../sandbox/launcher.js';
import { memoryOfTree } from '../sandbox/process-memory.js';
import { observeProcessState } from '../sandbox/process-state.js';
import type { SandboxProcess } from '../sandbox/launcher.js';

/** A launcher ends after its sandbox, which takes seconds only if the kernel cannot end a process, ms. */
const killWaitMs = 30_000;
const MiB = 1024 * 1024;
/** Part of a new memory limit that a container may hold already. */
const mostHeld = 0.75;

/** Dependencies of a process container. */
interface ContainerParts extends Omit<ContainerIdentity, 'sinceMs'>, Pick<ContainerBody, 'load' | 'release'> {
  process: SandboxProcess;
  /** Whether the process is a launcher with the sandbox below it, or the runtime itself. */
  hasLauncher: boolean;
  cgroups: Cgroups;
  clock: Clock;
}

/** A container whose processes are children of the invoker's process. */
export function createProcessContainer(parts: ContainerParts): ConnectedContainer {
  const { child, socket, runs } = parts.process;
  const container = new ConnectedContainer({ ...parts, sinceMs: parts.clock.now() }, new ProcessBody(parts));
  child.once('exit', () => {
    const isExhausted = child.signalCode === outOfMemorySignal && parts.hasLauncher;
    const peakBytes = isExhausted ? parts.cgroups.peakBytes(parts.id) : undefined;
    container.ended(isExhausted, peakBytes === undefined ? undefined : Math.round(peakBytes / MiB));
    socket.destroy();
    runs?.destroy();
  });
  void parts.process.closed.then(() => container.drained());
  return container;
}

class ProcessBody implements ContainerBody {
  private frozen = false;
  readonly load: ContainerBody['load'];
  readonly release: ContainerBody['release'];

  constructor(private readonly parts: ContainerParts) {
    this.load = (request, limits, init) => parts.load(request, limits, init);
    this.release = () => parts.release();
  }

  get hostPid(): number | undefined {
    return this.parts.process.child.pid;
  }

  async pause(): Promise<void> {
    this.frozen = await this.parts.cgroups.freeze(this.parts.id, true);
    if (!this.frozen) this.command(commands.pause, 'SIGSTOP');
  }

  async resume(): Promise<void> {
    if (this.frozen) await this.parts.cgroups.freeze(this.parts.id, false);
    else this.command(commands.resume, 'SIGCONT');
  }

  giveWay(gives: boolean): Promise<void> {
    return this.parts.cgroups.giveWay(this.parts.id, gives);
  }

  processorMs(): Promise<number | undefined> {
    return this.parts.cgroups.processorMs(this.parts.id);
  }

  fits(memoryMiB: number): boolean {
    const heldBytes = this.parts.cgroups.heldBytes(this.parts.id);
    return heldBytes !== undefined && heldBytes <= memoryMiB * MiB * mostHeld;
  }

  limitMemory(memoryMiB: number): boolean {
    return this.parts.cgroups.limitMemory(this.parts.id, memoryMiB * MiB);
  }

  async memoryMiB(): Promise<number | undefined> {
    return this.hostPid === undefined ? undefined : memoryOfTree(this.hostPid);
  }

  kill(): void {
    const { child } = this.parts.process;
    if (this.parts.hasLauncher) child.kill('SIGTERM');
    else this.signalGroup('SIGKILL');
    // A launcher that does not end its sandbox is killed; the sandbox's init dies with it.
    const timer = this.parts.clock.setTimer(killWaitMs, () => child.kill('SIGKILL'));
    child.once('exit', () => timer.cancel());
  }

  private command(command: string, forGroup: NodeJS.Signals): void {
    if (this.parts.hasLauncher) this.parts.process.control?.write(command);
    else this.signalGroup(forGroup);
  }

  /** Signals the runtime's process group, which a runtime without a launcher leads. */
  private signalGroup(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.parts.process.child.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

const startTimeoutMs = 30_000;

/** A process that is to become a container. */
interface StartingRuntime {
  container: ConnectedContainer;
  started: SandboxProcess;
  logs: LogCollector;
  clock: Clock;
  protocol: RuntimeLaunch['protocol'];
  /** The sandbox's address, for runtimes that speak HTTP. */
  host: string;
  hasLauncher: boolean;
}

/** Why a runtime did not start. */
interface StartFailure {
  reason: string;
  /** Whether its launcher ended without a report: nothing of the runtime had begun. */
  beforeStart: boolean;
}

/** Connects a container to its runtime. Resolves with the failure if the runtime did not start, else with undefined. */
export function connectRuntime(starting: StartingRuntime): Promise<StartFailure | undefined> {
  const { container, started, logs, clock, protocol, host, hasLauncher } = starting;
  const outcome = deferred<StartFailure | undefined>();
  let ready = !hasLauncher;
  let greeted = protocol === 'http';
  let startedMs = clock.monotonicMs();
  let greetedMs = startedMs;
  const fail = (reason: string, launcherSaidSo = false): void =>
    outcome.resolve({ reason, beforeStart: !ready && !launcherSaidSo });
  const progress = (): void => {
    if (!ready || !greeted) return;
    // The hello may be read before the launcher's report.
    if (protocol === 'framed') container.runtimeMs = Math.max(0, greetedMs - startedMs);
    outcome.resolve(undefined);
  };
  const framed = new FramedConnection(started.socket, logs, clock, {
    hello: () => {
      greeted = true;
      greetedMs = clock.monotonicMs();
      progress();
    },
    launcher: (text) => {
      if (text !== 'ready') {
        fail(text.split('\n').slice(1).join(': '), true);
        return;
      }
      ready = true;
      startedMs = clock.monotonicMs();
      progress();
    },
    broken: (reason) => {
      // With a runtime that speaks HTTP, the launcher closes the socket after its report.
      if (protocol === 'http' && ready) return;
      fail(reason);
      void container.destroy();
    },
  });
  if (started.runs?.destroyed === false) framed.openRuns(started.runs);
  const broken = (): void => void container.destroy();
  container.connect(protocol === 'framed' ? framed : new HttpConnection(host, logs, clock, broken));
  void container.exited.then(() => fail('it ended at once'));
  const timer = clock.setTimer(startTimeoutMs, () => fail(`it was not ready within ${startTimeoutMs} ms`, true));
  void outcome.promise.then(() => timer.cancel());
  return outcome.promise;
}

/**
 * Records the process state of a container with a launcher for checks of unloads. Without a launcher a runtime's processes
 * are not known, so that its unloads stay unconfirmed and the container is not reused.
 */
export async function observeState(container: ConnectedContainer, clock: Clock): Promise<void> {
  const { hostPid } = container;
  if (!container.needsStateCheck || hostPid === undefined) return;
  container.confirmUnloadsBy(await observeProcessState(hostPid, clock));
}

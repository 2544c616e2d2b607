import { readFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import type { Duplex } from 'node:stream';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../container-factory.js';
import type { ContainerSpec } from '../container-factory.js';
import { ConnectedContainer } from '../protocol/connected-container.js';
import type { ContainerBody, ProcessStateCheck } from '../protocol/connected-container.js';
import { deferred } from '../protocol/connection.js';
import { FramedConnection } from '../protocol/framed-connection.js';
import { HttpConnection } from '../protocol/http-connection.js';
import { LogCollector } from '../protocol/log-collector.js';
import { observeProcessState } from '../sandbox/process-state.js';
import { demultiplex, textOfMultiplexed } from './docker-streams.js';
import type { RuntimeSocket, RuntimeStreams } from './docker-streams.js';
import { EngineError } from './engine-client.js';
import type { ContainerState, Engine } from './engine.js';
import type { Holder } from '../sandbox/launcher.js';
import { holdCommand } from './images.js';

const helloTimeoutMs = 30_000;
const toldLines = 20;

/** A container that the engine has made and not started. */
interface MadeContainer {
  id: string;
  engineId: string;
  spec: ContainerSpec;
  image: string;
  engine: Engine;
  clock: Clock;
  /** Socket of a runtime that speaks frames; undefined for runtimes that speak HTTP. */
  socket: RuntimeSocket | undefined;
  /** Aborted when the factory closes. */
  closing: AbortSignal;
  load: ContainerBody['load'];
  /** As Container.msContainer. */
  msContainer: string | undefined;
  /** As ContainerIdentity.proxied. */
  proxied: boolean;
  /** As DockerParts.remove. */
  remove(): Promise<void>;
}

/**
 * Starts a made container and connects its runtime; removes the container on failure. Rejects with EngineError or
 * ProvisioningError.
 */
export async function startContainer(made: MadeContainer): Promise<ConnectedContainer> {
  try {
    return await (made.socket ? startFramed(made, made.socket) : startHttp(made));
  } catch (error) {
    await made.remove();
    throw error;
  }
}

/** Starts a container of one of our images: logs and calls use the socket. */
async function startFramed(made: MadeContainer, socket: RuntimeSocket): Promise<ConnectedContainer> {
  const { clock, engine, engineId } = made;
  await engine.start(engineId);
  const startedMs = clock.monotonicMs();
  const { container, body } = await build(made);
  const failure = deferred<string | undefined>();
  const timer = clock.setTimer(helloTimeoutMs, () => failure.resolve(`it was not ready within ${helloTimeoutMs} ms`));
  const watching = watchStart(made, failure.resolve);
  const close = (): void => failure.resolve('the factory was closed');
  made.closing.addEventListener('abort', close);
  // The factory may have closed while the engine started the container.
  if (made.closing.aborted) close();
  const logs = new LogCollector(clock, { sentinels: false });
  let connected: RuntimeStreams | undefined;
  void socket.streams.then((streams) => {
    connected = streams;
    const { stdout, stderr, channel, runs } = streams;
    logs.attach(stdout, 'stdout');
    logs.attach(stderr, 'stderr');
    let open = 2;
    const drained = (): void => {
      // The container's end, which loses calls under way, must be handled before the drained logs.
      if (--open === 0) void container.exited.then(() => container.drained());
    };
    for (const stream of [stdout, stderr]) {
      stream.on('close', drained);
      stream.resume();
    }
    const connection = new FramedConnection(channel, logs, clock, {
      hello: () => {
        container.runtimeMs = clock.monotonicMs() - startedMs;
        failure.resolve(undefined);
      },
      launcher: () => void body.lost(),
      broken: (reason) => {
        failure.resolve(reason);
        void body.lost();
      },
    });
    container.connect(connection);
    channel.resume();
    if (runs) {
      connection.openRuns(runs);
      runs.resume();
    }
    void container.exited.then(() => {
      channel.destroy();
      runs?.destroy();
    });
  });
  const reason = await failure.promise;
  timer.cancel();
  made.closing.removeEventListener('abort', close);
  watching.stop();
  if (reason === undefined) {
    // No further process may connect.
    await socket.close();
    if (container.needsStateCheck) container.confirmUnloadsBy(await observeState(made, container.hostPid));
    return container;
  }
  for (const stream of Object.values(connected ?? {})) stream.destroy();
  const told = [...logs.cut().slice(-toldLines), await tailOf(made)].join('\n').trim();
  throw new ProvisioningError(`A container of '${made.image}' did not start: ${reason}.${told && `\n${told}`}`);
}

/** Starts a container of a foreign image: the engine reads its output, whose end is the container's end. */
async function startHttp(made: MadeContainer): Promise<ConnectedContainer> {
  const { clock, engine, engineId } = made;
  const logs = new LogCollector(clock, { sentinels: true });
  const { stream, head } = await engine.attach(engineId);
  try {
    // Read from before the start: the container may end while the engine is asked about it.
    const ended = printed(stream, head, logs);
    await engine.start(engineId);
    const { container, body, state } = await build(made);
    const { address = '' } = state ?? {};
    if (!state?.running) {
      const reason = `A container of '${made.image}' ended at once with status ${state?.exitCode ?? 'unknown'}.`;
      throw new ProvisioningError(reason, 'The action did not initialize and exited unexpectedly.', true);
    }
    if (address === '') {
      throw new ProvisioningError(`A container of '${made.image}' has no address: its network gives none.`);
    }
    container.connect(new HttpConnection(address, logs, clock, () => void body.lost()));
    void ended.then(() => {
      void body.lost();
      void container.exited.then(() => container.drained());
    });
    void container.exited.then(() => stream.destroy());
    return container;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/** Collects a container's output; resolves at the end of the output, which is the container's end. */
function printed(stream: Duplex, head: Buffer, logs: LogCollector): Promise<unknown> {
  const outputs = { stdout: new PassThrough(), stderr: new PassThrough() };
  const ends = Object.values(outputs).map((output) => new Promise((resolve) => output.on('end', resolve)));
  logs.attach(outputs.stdout, 'stdout');
  logs.attach(outputs.stderr, 'stderr');
  demultiplex(stream, head, outputs.stdout, outputs.stderr);
  return Promise.all(ends);
}

interface BuiltContainer {
  container: ConnectedContainer;
  body: DockerBody;
  state: ContainerState | undefined;
}

async function build(made: MadeContainer): Promise<BuiltContainer> {
  const { id, engineId, spec, engine, clock, load, msContainer, proxied } = made;
  const state = await engine.inspect(engineId);
  const pid = state?.pid ?? 0;
  const hostPid = pid === 0 ? undefined : pid;
  const body = new DockerBody({ engineId, engine, clock, hostPid, load, remove: () => made.remove() });
  const container = new ConnectedContainer({ id, spec, sinceMs: clock.now(), msContainer, proxied }, body);
  body.belongTo(container);
  return { container, body, state };
}

/**
 * Records the process state for checks of unloads. The engine's process ids are valid only if the process's control group
 * names the container: else the engine runs on another host.
 */
async function observeState(
  { engineId, clock }: MadeContainer,
  pid: number | undefined,
): Promise<ProcessStateCheck | undefined> {
  if (pid === undefined) return undefined;
  const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
  return groups.includes(engineId) ? observeProcessState(pid, clock) : undefined;
}

/** Reports a container that ends before its runtime said hello. */
function watchStart({ engine, engineId, clock }: MadeContainer, tell: (reason: string) => void): { stop(): void } {
  let stopped = false;
  const look = async (): Promise<void> => {
    const state = await engine.inspect(engineId);
    if (stopped) return;
    if (!state?.running) return tell(`it ended at once with status ${state?.exitCode ?? 'unknown'}`);
    clock.setBackgroundTimer(200, again);
  };
  const again = (): void => {
    if (!stopped) look().catch((error: Error) => tell(error.message));
  };
  clock.setBackgroundTimer(200, again);
  return {
    stop: () => {
      stopped = true;
    },
  };
}

/** The last lines that the container printed, if the engine has them. */
async function tailOf({ engine, engineId }: MadeContainer): Promise<string> {
  try {
    return textOfMultiplexed(await engine.tail(engineId, toldLines)).trim();
  } catch (error) {
    return `The output of the container cannot be read: ${(error as Error).message}`;
  }
}

/** Time that a container without its runtime has to end by itself before it is killed, ms. */
const endWaitMs = 1000;
const endPollMs = 20;

/** Dependencies of a DockerBody. */
interface DockerParts {
  /** The engine's id of the container. */
  engineId: string;
  engine: Engine;
  clock: Clock;
  hostPid: number | undefined;
  load: ContainerBody['load'];
  /**
   * Removes the container from the engine, with its other resources on the host; failures are retried later. Never rejects.
   */
  remove(): Promise<void>;
}

/** The processes of a container that the engine runs. */
class DockerBody implements ContainerBody {
  private container: ConnectedContainer | undefined;
  private removal: Promise<void> | undefined;
  private leaving = false;

  readonly load: ContainerBody['load'];

  constructor(private readonly parts: DockerParts) {
    this.load = (request, limits, init) => parts.load(request, limits, init);
  }

  get hostPid(): number | undefined {
    return this.parts.hostPid;
  }

  /** Sets the container that the processes belong to; once, before any other call. */
  belongTo(container: ConnectedContainer): void {
    this.container = container;
  }

  async pause(): Promise<void> {
    try {
      await this.parts.engine.pause(this.parts.engineId);
    } catch (error) {
      // The engine may still freeze the container later, and the next run would hang.
      if (error instanceof EngineError && error.isUnreachable) void this.container?.destroy();
      throw error;
    }
  }

  resume(): Promise<void> {
    return this.parts.engine.unpause(this.parts.engineId);
  }

  /** Does nothing: the engine takes longer to change a share than the change would help. */
  giveWay(): Promise<void> {
    return Promise.resolve();
  }

  async processorMs(): Promise<number | undefined> {
    try {
      return await this.parts.engine.processorMs(this.parts.engineId);
    } catch {
      // The container has ended, or the engine does not answer, which Engine reports by itself.
      return undefined;
    }
  }

  kill(): void {
    void this.removed().then(() => this.container?.ended(false));
  }

  release(): Promise<void> {
    return this.removed();
  }

  /**
   * Handles a runtime that ended or broke the protocol: waits `endWaitMs` for the container's end, reads its cause, and
   * kills a container that goes on.
   */
  async lost(): Promise<void> {
    if (this.leaving) return;
    this.leaving = true;
    const deadlineMs = this.parts.clock.monotonicMs() + endWaitMs;
    let state = await this.state();
    while (state?.running && this.removal === undefined && this.parts.clock.monotonicMs() < deadlineMs) {
      await sleep(this.parts.clock, endPollMs);
      state = await this.state();
    }
    if (this.removal === undefined && state?.running === false) this.container?.ended(state.oomKilled);
    else await this.container?.destroy();
  }

  private async state(): Promise<ContainerState | undefined> {
    try {
      return await this.parts.engine.inspect(this.parts.engineId);
    } catch {
      // The engine does not answer, so that the cause is unknown and the container is killed.
      return undefined;
    }
  }

  private removed(): Promise<void> {
    this.removal ??= this.parts.remove();
    return this.removal;
  }
}

/** Memory of a holder, bytes; about the least that engines accept. */
const memoryBytes = 16 * 1024 * 1024;
const user = '65534:65534';
const holderPids = 16;

/** Settings of the container of a holder. */
interface HolderPlan {
  engine: Engine;
  /** Name of the container. */
  name: string;
  /** Id of one of our images. */
  image: string;
  labels: Readonly<Record<string, string>>;
  /** Removes a container from the engine; never rejects. */
  remove(engineId: string): Promise<void>;
}

/**
 * Starts a holder: a container that only reaps processes and whose PID namespace other containers join. All processes in the
 * namespace end with the holder. Rejects with EngineError, or with an Error that names the reason.
 */
export async function startDockerHolder({ engine, name, image, labels, remove }: HolderPlan): Promise<Holder> {
  const engineId = await engine.create(name, {
    Image: image,
    Cmd: holdCommand,
    Labels: labels,
    User: user,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: {
      Memory: memoryBytes,
      MemorySwap: memoryBytes,
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      IpcMode: 'private',
      PidsLimit: holderPids,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
    },
  });
  const exited = deferred<void>();
  try {
    // A holder prints nothing: the end of its output is its end.
    const { stream } = await engine.attach(engineId);
    stream.on('error', () => undefined).on('close', () => exited.resolve());
    stream.resume();
    await engine.start(engineId);
    const state = await engine.inspect(engineId);
    if (!state?.running) throw new Error(`The holder ended at once with status ${state?.exitCode ?? 'unknown'}`);
    const end = async (): Promise<void> => {
      await remove(engineId);
      stream.destroy();
      await exited.promise;
    };
    // A holder whose output stream has ended can no longer be observed, so it is removed.
    void exited.promise.then(() => remove(engineId));
    return { pidNamespace: `container:${engineId}`, exited: exited.promise, end };
  } catch (error) {
    await remove(engineId);
    throw error;
  }
}

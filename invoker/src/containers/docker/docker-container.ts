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
  /** Of a runtime that speaks frames. */
  socket: RuntimeSocket | undefined;
  /** Aborted once the start is no longer wanted. */
  closing: AbortSignal;
  load: ContainerBody['load'];
  /** As Container.msContainer. */
  msContainer: string | undefined;
  /** As ContainerIdentity.proxied. */
  proxied: boolean;
  /** As DockerParts.remove. */
  remove(): Promise<void>;
}

/** Starts it and connects its runtime. It is removed if that fails. Rejects with EngineError or ProvisioningError. */
export async function startContainer(made: MadeContainer): Promise<ConnectedContainer> {
  try {
    return await (made.socket ? startFramed(made, made.socket) : startHttp(made));
  } catch (error) {
    await made.remove();
    throw error;
  }
}

/** One of our images: logs and calls come by its socket. */
async function startFramed(made: MadeContainer, socket: RuntimeSocket): Promise<ConnectedContainer> {
  const { clock, engine, engineId } = made;
  await engine.start(engineId);
  const { container, body } = await build(made);
  const failure = deferred<string | undefined>();
  const timer = clock.setTimer(helloTimeoutMs, () => failure.resolve(`it was not ready within ${helloTimeoutMs} ms`));
  const watching = watchStart(made, failure.resolve);
  const close = (): void => failure.resolve('the factory was closed');
  made.closing.addEventListener('abort', close);
  // While the engine started it.
  if (made.closing.aborted) close();
  const logs = new LogCollector(clock, { sentinels: false });
  let connected: RuntimeStreams | undefined;
  void socket.streams.then((streams) => {
    connected = streams;
    const { stdout, stderr, channel } = streams;
    logs.attach(stdout, 'stdout');
    logs.attach(stderr, 'stderr');
    let open = 2;
    const drained = (): void => {
      // What is under way is lost first, which is known later.
      if (--open === 0) void container.exited.then(() => container.drained());
    };
    for (const stream of [stdout, stderr]) {
      stream.on('close', drained);
      stream.resume();
    }
    container.connect(
      new FramedConnection(channel, logs, clock, {
        hello: () => failure.resolve(undefined),
        launcher: () => void body.lost(),
        broken: (reason) => {
          failure.resolve(reason);
          void body.lost();
        },
      }),
    );
    channel.resume();
    void container.exited.then(() => channel.destroy());
  });
  const reason = await failure.promise;
  timer.cancel();
  made.closing.removeEventListener('abort', close);
  watching.stop();
  if (reason === undefined) {
    // No other process connects.
    await socket.close();
    if (container.needsStateCheck) container.confirmUnloadsBy(await observeState(made, container.hostPid));
    return container;
  }
  for (const stream of Object.values(connected ?? {})) stream.destroy();
  const told = [...logs.cut().slice(-toldLines), await tailOf(made)].join('\n').trim();
  throw new ProvisioningError(`A container of '${made.image}' did not start: ${reason}.${told && `\n${told}`}`);
}

/** A foreign image: what it prints is read by the engine, and its end is the end of that. */
async function startHttp(made: MadeContainer): Promise<ConnectedContainer> {
  const { clock, engine, engineId } = made;
  const logs = new LogCollector(clock, { sentinels: true });
  const { stream, head } = await engine.attach(engineId);
  try {
    // Looked for before it starts: it may end while the engine is asked about it.
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

/** Collects what a container prints; resolves when that has ended, and with it the container. */
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

/** The engine's process ids are those of this host only if it runs here: then the process's control group names the container. */
async function observeState(
  { engineId, clock }: MadeContainer,
  pid: number | undefined,
): Promise<ProcessStateCheck | undefined> {
  if (pid === undefined) return undefined;
  const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
  return groups.includes(engineId) ? observeProcessState(pid, clock) : undefined;
}

/** Notices a container that ends before its runtime said anything. */
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

/** What it printed last, where the engine can tell. */
async function tailOf({ engine, engineId }: MadeContainer): Promise<string> {
  try {
    return textOfMultiplexed(await engine.tail(engineId, toldLines)).trim();
  } catch (error) {
    return `What it printed cannot be read: ${(error as Error).message}`;
  }
}

/** How long a container whose runtime is gone is asked whether it has ended, before it is killed; ms. */
const endWaitMs = 1000;
const endPollMs = 20;

/** Dependencies of a DockerBody. */
interface DockerParts {
  /** The engine's id of it. */
  engineId: string;
  engine: Engine;
  clock: Clock;
  hostPid: number | undefined;
  load: ContainerBody['load'];
  /** Removes it from the engine, and what else it held on the host; tried again later if that fails. Never rejects. */
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

  /** Sets whose processes they are; once, before anything else. */
  belongTo(container: ConnectedContainer): void {
    this.container = container;
  }

  async pause(): Promise<void> {
    try {
      await this.parts.engine.pause(this.parts.engineId);
    } catch (error) {
      // It may be frozen yet, once the engine gets to it: the next run would hang.
      if (error instanceof EngineError && error.isUnreachable) void this.container?.destroy();
      throw error;
    }
  }

  resume(): Promise<void> {
    return this.parts.engine.unpause(this.parts.engineId);
  }

  /** An engine takes longer to change a share than it would help. */
  giveWay(): Promise<void> {
    return Promise.resolve();
  }

  async processorMs(): Promise<number | undefined> {
    try {
      return await this.parts.engine.processorMs(this.parts.engineId);
    } catch {
      // It cannot be told of one that is gone, nor by an engine that does not answer, which is found out elsewhere.
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
   * Its runtime went away or broke the protocol: finds out how it ended, waiting a little for a container that is about to,
   * and kills it if it goes on.
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
      // An engine that does not answer cannot say how it ended: it is killed.
      return undefined;
    }
  }

  private removed(): Promise<void> {
    this.removal ??= this.parts.remove();
    return this.removal;
  }
}

/** The engine's least. */
const memoryBytes = 16 * 1024 * 1024;
const user = '65534:65534';
const holderPids = 16;

/** Settings of the container of a holder. */
interface HolderPlan {
  engine: Engine;
  /** Of the container. */
  name: string;
  /** Id of one of our images. */
  image: string;
  labels: Readonly<Record<string, string>>;
  /** Removes a container from the engine; never rejects. */
  remove(engineId: string): Promise<void>;
}

/**
 * Starts a container that does nothing but reap, whose PID namespace others join. When it ends, for whatever reason, so
 * does all that is in the namespace. Rejects with EngineError, or an Error that says why it does not run.
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
    // Its output, of which there is none, ends when it does.
    const { stream } = await engine.attach(engineId);
    stream.on('error', () => undefined).on('close', () => exited.resolve());
    stream.resume();
    await engine.start(engineId);
    const state = await engine.inspect(engineId);
    if (!state?.running) throw new Error(`Its holder ended at once with status ${state?.exitCode ?? 'unknown'}`);
    const end = async (): Promise<void> => {
      await remove(engineId);
      stream.destroy();
      await exited.promise;
    };
    // Without the holder's output its end would not be noticed.
    void exited.promise.then(() => remove(engineId));
    return { pidNamespace: `container:${engineId}`, exited: exited.promise, end };
  } catch (error) {
    await remove(engineId);
    throw error;
  }
}

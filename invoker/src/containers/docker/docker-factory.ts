import { createHash } from 'node:crypto';
import { mkdir, realpath, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Container, ContainerFactory, ContainerSpec, Match } from '../container-factory.js';
import { ProvisioningError } from '../container-factory.js';
import { matchSpecs } from '../match-specs.js';
import type { GpuAccess } from '../process/gpu-launch.js';
import { bounded, TooMuchWaits } from './bounded.js';
import { createRequest } from './create-request.js';
import { Engine, defaultTimeouts } from './engine.js';
import type { ImageFacts } from './engine.js';
import { EngineError } from './engine-client.js';
import type { DockerFactoryOptions } from './factory-options.js';
import { labels, pairCommand, speaksFrames } from './image-labels.js';
import { Images } from './images.js';
import { openRuntimeSocket, maxSocketPathBytes } from './runtime-socket.js';
import type { RuntimeSocket } from './runtime-socket.js';
import { startContainer } from './start-container.js';

/** Containers that are made at once, as OpenWhisk's docker runs. */
const maxStarting = 10;
const maxWaitingStarts = 1000;
/** How often what could not be removed is tried again, ms. */
const removeAgainMs = 5000;

/** A factory of containers of a Docker engine on this host. */
export interface DockerContainerFactory extends ContainerFactory {
  /** Where containers reach what `serveContainers` serves, as `address:port`; undefined if they cannot. After start(). */
  readonly containerService: string | undefined;
  /** Whether the engine answers. */
  readonly health: Engine['health'];
}

/** Makes containers by a Docker engine: one of ours by its mounted socket, a foreign one by HTTP. */
export function createDockerFactory(options: DockerFactoryOptions): DockerContainerFactory {
  return new DockerFactory(options);
}

class DockerFactory implements DockerContainerFactory {
  containerService: string | undefined;
  private readonly engine: Engine;
  private readonly images: Images;
  private readonly inTurn = bounded(maxStarting, maxWaitingStarts);
  private readonly containers = new Map<string, Container>();
  private readonly unremoved = new Set<string>();
  private readonly platform: string;
  private dataDir: string;
  private made = 0;
  private state: 'new' | 'open' | 'closed' = 'new';

  constructor(private readonly options: DockerFactoryOptions) {
    const { clock, socketPath, catalog, logger, timeouts } = options;
    this.engine = new Engine(socketPath, clock, { ...defaultTimeouts, ...timeouts }, (health, reason) =>
      logger?.warn(`The Docker engine is ${health}. ${reason}`),
    );
    this.images = new Images(this.engine, clock, (image) => catalog.isLocal(image));
    this.dataDir = resolve(options.dataDir);
    this.platform = createHash('sha256').update(this.dataDir).digest('hex').slice(0, 12);
  }

  get health(): Engine['health'] {
    return this.engine.health;
  }

  async start(): Promise<string[]> {
    await this.engine.ping();
    await mkdir(this.dataDir, { recursive: true });
    this.dataDir = await realpath(this.dataDir);
    if (Buffer.byteLength(this.socketFile('wsk99999_99999999')) > maxSocketPathBytes) {
      throw new Error(`The path of the data folder is too long for sockets below it: '${this.dataDir}'.`);
    }
    const leftovers = await this.engine.list(`${labels.platform}=${this.platform}`);
    await Promise.all(leftovers.map((id) => this.inTurn(() => this.engine.remove(id))));
    await rm(this.folder(), { recursive: true, force: true });
    await mkdir(this.folder(), { mode: 0o700 });
    this.state = 'open';
    return this.serve();
  }

  supports(kind: string): boolean {
    return this.options.catalog.supports(kind);
  }

  create(spec: ContainerSpec): Promise<Container> {
    return this.make(spec, false);
  }

  prewarm(spec: ContainerSpec): Promise<Container> {
    return this.make(spec, true);
  }

  match(prewarmed: ContainerSpec, wanted: ContainerSpec): Match {
    return matchSpecs(prewarmed, wanted);
  }

  async close(): Promise<void> {
    this.state = 'closed';
    await Promise.all([
      ...[...this.unremoved].map((engineId) => this.removeLeft(engineId)),
      ...[...this.containers.values()].map((container) => container.destroy()),
    ]);
    await rm(this.folder(), { recursive: true, force: true });
    this.engine.close();
  }

  private async make(spec: ContainerSpec, ahead: boolean): Promise<Container> {
    if (this.state !== 'open') throw new ProvisioningError('The container factory is not open.');
    const image = this.options.catalog.imageOf(spec.kind);
    if (image === undefined) throw new ProvisioningError(`There is no image for '${spec.kind}'.`);
    if (spec.requirements.length > 0) {
      const reason = `Packages are not installed into images: '${image}' must hold what the action needs.`;
      throw new ProvisioningError(reason, reason, true);
    }
    const gpu = spec.gpu && (await this.gpuAccess(spec.gpu));
    const facts = await this.images.ready(image);
    try {
      return await this.inTurn(() => this.begin(spec, image, facts, ahead, gpu));
    } catch (error) {
      if (error instanceof ProvisioningError) throw error;
      if (error instanceof TooMuchWaits) throw new ProvisioningError(`Too many containers are being made.`);
      if (!(error instanceof EngineError)) throw error;
      throw new ProvisioningError(`A container of '${image}' could not be made: ${error.message}`);
    }
  }

  private async gpuAccess(grant: NonNullable<ContainerSpec['gpu']>): Promise<GpuAccess> {
    if (!this.options.gpuAccess) throw new ProvisioningError('There is no GPU here.');
    return this.options.gpuAccess(grant);
  }

  private async begin(
    spec: ContainerSpec,
    image: string,
    facts: ImageFacts,
    ahead: boolean,
    gpu: GpuAccess | undefined,
  ): Promise<Container> {
    if (this.state !== 'open') throw new ProvisioningError('The container factory is not open.');
    const { engine, options } = this;
    const id = `wsk${options.instance}_${++this.made}`;
    const name = `${id}_${ahead ? 'prewarm' : 'cold'}_${spec.kind.replace(/[^\w]+/g, '')}_${this.platform}`;
    const pair = ahead && spec.concurrency === 1 ? pairCommand(facts) : undefined;
    const socket = speaksFrames(facts) ? await openRuntimeSocket(this.socketFile(id)) : undefined;
    let engineId: string;
    try {
      engineId = await engine.create(
        name,
        createRequest({
          // By its id: what was looked at is what is run.
          image: facts.id,
          spec,
          labels: { [labels.platform]: this.platform, [labels.kind]: spec.kind },
          env: { ...options.runtimeEnv, ...(pair && { GPUWHISK_PREWARM: 'true' }) },
          network: options.network,
          dns: options.dns ?? [],
          poolMemoryMiB: options.poolMemoryMiB,
          ...(pair && { command: pair }),
          ...(socket && { socket: this.socketFile(id) }),
          ...(gpu && { gpu }),
        }),
      );
    } catch (error) {
      await socket?.close();
      // An engine that did not answer may make it all the same.
      if (error instanceof EngineError && error.isUnreachable) this.removeLater(name);
      throw error;
    }
    const remove = (): Promise<void> => this.remove(id, engineId, socket);
    const { clock } = options;
    const started = await startContainer({ id, engineId, spec, image, engine, clock, socket, remove });
    this.containers.set(id, started);
    if (this.state !== 'open') {
      await started.destroy();
      throw new ProvisioningError('The container factory was closed.');
    }
    return started;
  }

  private async remove(id: string, engineId: string, socket: RuntimeSocket | undefined): Promise<void> {
    this.containers.delete(id);
    await socket?.close();
    this.unremoved.add(engineId);
    await this.removeLeft(engineId);
  }

  /** What the engine cannot remove now is tried again; its next life's start removes it otherwise. */
  private async removeLeft(engineId: string): Promise<void> {
    try {
      await this.engine.remove(engineId);
      this.unremoved.delete(engineId);
    } catch (error) {
      this.options.logger?.warn(`Container ${engineId} could not be removed: ${(error as Error).message}`);
      this.removeLater(engineId);
    }
  }

  /** By id or name; when the factory is closed before, then. */
  private removeLater(engineId: string): void {
    if (this.state === 'closed') return;
    this.unremoved.add(engineId);
    this.options.clock.setBackgroundTimer(removeAgainMs, () => {
      if (this.state !== 'closed') void this.removeLeft(engineId);
    });
  }

  /** Listens for containers where they reach the host; says so if they do not. */
  private async serve(): Promise<string[]> {
    const { network, serveContainers } = this.options;
    if (!serveContainers) return [];
    const address = await this.engine.gateway(network);
    if (address === undefined)
      return [`Functions do not reach the platform's API: network '${network}' has no gateway.`];
    try {
      this.containerService = `${address}:${await serveContainers(address)}`;
      return [];
    } catch (error) {
      return [`Functions do not reach the platform's API at ${address}: ${(error as Error).message}.`];
    }
  }

  private folder(): string {
    return join(this.dataDir, 'docker');
  }

  private socketFile(id: string): string {
    return join(this.folder(), id);
  }
}

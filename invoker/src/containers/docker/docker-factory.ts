import { createHash } from 'node:crypto';
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import type { GpuGrant, Container, ContainerFactory, ContainerSpec, Match, StartReport } from '../container-factory.js';
import type { Bind, GpuAccess, Build } from '../runtime-launch.js';
import type { EgressPolicy } from '../sandbox/egress.js';
import type { EngineTimeouts, ImageFacts } from './engine.js';
import type { ImageCatalog } from './images.js';
import { bounded, TooMuchWaits } from '@gpuwhisk/common/concurrency';
import { removeTree } from '../../host/trees.js';
import { buildMemoryMiB, isNativeSource } from '../../runtimes/native-runtime.js';
import { BuildCache } from '../build-cache.js';
import { ProvisioningError, bareSpec, matchSpecs } from '../container-factory.js';
import { MsContainers } from '../mscontainer/mscontainer-factory.js';
import type { ContainerBody } from '../protocol/connected-container.js';
import { defaultEgress, nameServers } from '../sandbox/egress.js';
import type { Holder, SharedNamespace } from '../sandbox/launcher.js';
import { openContainerNetwork } from './container-network.js';
import type { ContainerNetwork } from './container-network.js';
import { createRequest } from './create-request.js';
import { startContainer, startDockerHolder } from './docker-container.js';
import { openRuntimeSocket, maxSocketPathBytes } from './docker-streams.js';
import type { RuntimeSocket } from './docker-streams.js';
import { EngineError } from './engine-client.js';
import { Engine, defaultTimeouts, Removals } from './engine.js';
import { commandOf, labels, speaksFrames, takesRuns, Images } from './images.js';

/** Dependencies and settings of the Docker factory. */
export interface DockerFactoryOptions {
  catalog: ImageCatalog;
  clock: Clock;
  /** Path of the engine's Unix socket; the engine runs on this host. */
  socketPath: string;
  /** The platform's data folder, at the same path on the engine's host; sockets lie in `docker` below it. */
  dataDir: string;
  /** Number of the invoker; container names begin with the invoker's name, as OpenWhisk's do. */
  instance: number;
  /**
   * The operator's network for containers; absent: the platform's own network, in which containers are isolated from each
   * other.
   */
  network?: string | undefined;
  /** Folders in memory, besides /tmp, that images write to, by the beginning of the image's name; initially empty. */
  writable?: Readonly<Record<string, readonly string[]>>;
  /** Name servers of containers; default: the engine's. */
  dns?: readonly string[];
  /** Egress rules in the platform's own network; rules of namespaces do not apply to Docker containers. */
  egress?: EgressPolicy;
  /** Memory of the pool; a container's part of it is its part of the processors. */
  poolMemoryMiB: number;
  /** Certificates that functions trust: their files, and the variables that name them. */
  certificates?: { binds: readonly Bind[]; env: Readonly<Record<string, string>> };
  /** Environment of every runtime, such as `__OW_API_HOST`. */
  runtimeEnv?: Readonly<Record<string, string>>;
  /**
   * Listens on an address of the host that containers reach, and resolves with the port. Called once, by start(), and only
   * if the network has such an address.
   */
  serveContainers?: (address: string) => Promise<number>;
  /** The access of a container to its GPU; absent: no container has a GPU. Rejects with ProvisioningError. */
  gpuAccess?: (grant: GpuGrant) => Promise<GpuAccess>;
  timeouts?: Partial<EngineTimeouts>;
  logger?: { info(message: string): void; warn(message: string): void };
}

/** Containers that are made at once: OpenWhisk's bound on parallel `docker run`. */
const maxStarting = 10;
const maxWaitingStarts = 1000;
/**
 * First user id of pairs that share a PID namespace. Ids are given in turn and return after 50,000 others. They exist under
 * an engine's user mapping, too.
 */
const firstPairUser = 10_000;
const pairUsers = 50_000;

/** Environment of pairs, as in sandboxes: the folders are emptied after a function. */
const pairEnv = { GPUWHISK_PREWARM: 'true', GPUWHISK_SCRATCH: '/tmp:/dev/shm' };
/** Environment of programs that take a socket for runs: descriptor 4. */
const runsEnv = { GPUWHISK_RUNS_FD: '4' };

/** Settings of a container besides its spec. */
interface Start {
  image: string;
  facts: ImageFacts;
  gpu?: GpuAccess | undefined;
  /** Part of the container's name. */
  sort: 'cold' | 'prewarm' | 'build';
  /** Replaces the image's own program. */
  command?: readonly string[] | undefined;
  /** Whether functions are injected into the container. */
  injects?: boolean;
  /** As RuntimeLaunch.servesRuns. */
  servesRuns?: boolean;
  shared?: SharedNamespace;
}

/** A build in a container of the image. */
interface ImageBuild extends Build {
  image: string;
  facts: ImageFacts;
  command: readonly string[];
}

/** A factory of containers of a Docker engine on this host. */
export interface DockerContainerFactory extends ContainerFactory {
  /**
   * Address of the service that `serveContainers` opened, as `address:port`; undefined if containers cannot reach it. After
   * start().
   */
  readonly containerService: string | undefined;
  /** As Firewall.denyNodes; does nothing in an operator's network. After start(). */
  denyNodes(addresses: readonly string[]): Promise<void>;
  /** Whether the engine answers. */
  readonly health: Engine['health'];
}

/** Makes containers by a Docker engine. Our images are called through a mounted socket, foreign images by HTTP. */
export function createDockerFactory(options: DockerFactoryOptions): DockerContainerFactory {
  return new DockerFactory(options);
}

class DockerFactory implements DockerContainerFactory {
  private readonly engine: Engine;
  private readonly images: Images;
  private readonly removals: Removals;
  private readonly msContainers: MsContainers;
  private readonly builds: BuildCache<ImageBuild>;
  private readonly inTurn = bounded(maxStarting, maxWaitingStarts);
  private readonly containers = new Map<string, Container>();
  /** Starts under way or waiting. */
  private readonly starts = new Set<Promise<Container>>();
  private readonly closing = new AbortController();
  private readonly platform: string;
  private network: ContainerNetwork | undefined;
  private dataDir: string;
  private made = 0;
  /** Image of the last pair, used for holders: each of our images has the holder's program. */
  private holderImage = '';
  private state: 'new' | 'open' | 'closed' = 'new';

  constructor(private readonly options: DockerFactoryOptions) {
    const { clock, socketPath, catalog, logger, timeouts } = options;
    const warn = (message: string): void => logger?.warn(message);
    this.engine = new Engine(socketPath, clock, { ...defaultTimeouts, ...timeouts }, (health, reason) =>
      warn(`The Docker engine is ${health}. ${reason}`),
    );
    this.images = new Images(this.engine, clock, (image) => catalog.isLocal(image));
    this.removals = new Removals(this.engine, clock, warn);
    this.msContainers = new MsContainers(() => this.hold(), systemRandom);
    this.dataDir = resolve(options.dataDir);
    this.builds = new BuildCache(join(this.dataDir, 'builds'), clock, (build) => this.startBuild(build));
    this.platform = createHash('sha256').update(this.dataDir).digest('hex').slice(0, 12);
  }

  get health(): Engine['health'] {
    return this.engine.health;
  }

  get containerService(): string | undefined {
    return this.network?.service;
  }

  async denyNodes(addresses: readonly string[]): Promise<void> {
    await this.network?.denyNodes(addresses);
  }

  async start(): Promise<StartReport> {
    await this.engine.ping();
    await mkdir(this.dataDir, { recursive: true });
    this.dataDir = await realpath(this.dataDir);
    if (Buffer.byteLength(this.socketFile('wsk99999_99999999')) > maxSocketPathBytes) {
      throw new Error(`The path of the data folder is too long for sockets below it: '${this.dataDir}'.`);
    }
    await this.removals.removeAll(await this.engine.list(`${labels.platform}=${this.platform}`));
    await removeTree(this.folder());
    await mkdir(this.folder(), { mode: 0o700 });
    const { network: named, serveContainers: serve, egress = defaultEgress, dns = [] } = this.options;
    const own = { engine: this.engine, platform: this.platform, named, serve };
    const resolvers = dns.length > 0 ? dns : nameServers(await readFile('/etc/resolv.conf', 'utf8').catch(() => ''));
    this.network = await openContainerNetwork({ ...own, egress, nameServers: resolvers });
    this.state = 'open';
    return { weaknesses: [...this.network.weaknesses], notes: [...this.network.notes] };
  }

  supports(kind: string): boolean {
    return this.options.catalog.supports(kind);
  }

  create(spec: ContainerSpec): Promise<Container> {
    if (spec.training !== undefined) {
      const told = 'Training jobs do not run in containers of Docker.';
      return Promise.reject(new ProvisioningError(told, told, true));
    }
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
    this.closing.abort();
    await Promise.all([...this.containers.values()].map((container) => container.destroy()));
    // Starts that see the closed factory remove their containers. The wait is bounded by the engine's time limits.
    await Promise.allSettled(this.starts);
    await this.msContainers.close();
    await this.removals.close();
    await this.closeNetwork();
    await removeTree(this.folder());
    this.engine.close();
  }

  private async make(spec: ContainerSpec, ahead: boolean): Promise<Container> {
    this.checkOpen();
    const { catalog } = this.options;
    const image = catalog.imageOf(spec.kind);
    if (image === undefined) throw new ProvisioningError(`There is no image for '${spec.kind}'.`);
    if (spec.requirements.length > 0) {
      const reason = `Packages are not installed into images: '${image}' must hold what the action needs.`;
      throw new ProvisioningError(reason, reason, true);
    }
    const gpu = spec.gpu && (await this.gpuAccess(spec.gpu));
    const found = await this.images.ready(image);
    // Labels of an image that is not ours are not trusted.
    const facts = catalog.isLocal(image) ? found : { ...found, labels: {} };
    const command = ahead && spec.concurrency === 1 ? commandOf(facts, labels.pair) : undefined;
    const start: Start = {
      image,
      facts,
      gpu,
      sort: ahead ? 'prewarm' : 'cold',
      command,
      injects: command !== undefined,
      servesRuns: takesRuns(facts, command !== undefined),
    };
    // Containers with a GPU may all run as one user and could signal each other in a shared PID namespace.
    if (!command || gpu) return this.begin(spec, start);
    this.holderImage = facts.id;
    return this.msContainers.add((shared) => this.begin(spec, { ...start, shared }));
  }

  private async gpuAccess(grant: NonNullable<ContainerSpec['gpu']>): Promise<GpuAccess> {
    if (!this.options.gpuAccess) throw new ProvisioningError('There is no GPU here.');
    return this.options.gpuAccess(grant);
  }

  private startBuild({ image, facts, command }: ImageBuild): Promise<Container> {
    return this.begin(bareSpec('build', buildMemoryMiB), { image, facts, sort: 'build', command });
  }

  private async hold(): Promise<Holder> {
    this.checkOpen();
    const { engine, holderImage: image } = this;
    const name = `wsk${this.options.instance}_${++this.made}_mscontainer_${this.platform}`;
    const remove = (engineId: string): Promise<void> => this.removals.remove(engineId);
    return startDockerHolder({ engine, name, image, labels: { [labels.platform]: this.platform }, remove });
  }

  private checkOpen(): void {
    if (this.state !== 'open') throw new ProvisioningError('The container factory is not open.');
  }

  /** Starts a container, at most `maxStarting` at once. Rejects with ProvisioningError. */
  private async begin(spec: ContainerSpec, start: Start): Promise<Container> {
    const starting = this.inTurn(() => this.startNow(spec, start));
    this.starts.add(starting);
    try {
      return await starting;
    } catch (error) {
      if (error instanceof TooMuchWaits) throw new ProvisioningError(`Too many containers are being made.`);
      if (!(error instanceof EngineError)) throw error;
      throw new ProvisioningError(`A container of '${start.image}' could not be made: ${error.message}`);
    } finally {
      this.starts.delete(starting);
    }
  }

  private async startNow(spec: ContainerSpec, start: Start): Promise<Container> {
    this.checkOpen();
    const { engine, options } = this;
    const { image, facts, gpu, sort, command, shared, servesRuns = false } = start;
    const number = ++this.made;
    const id = `wsk${options.instance}_${number}`;
    const name = `${id}_${sort}_${spec.kind.replace(/[^\w]+/g, '')}_${this.platform}`;
    const socket = speaksFrames(facts) ? await openRuntimeSocket(this.socketFile(id), servesRuns) : undefined;
    let engineId: string;
    try {
      engineId = await engine.create(
        name,
        createRequest({
          // The id, not the name, so that the inspected image is the one that runs.
          image: facts.id,
          spec,
          labels: { [labels.platform]: this.platform, [labels.kind]: spec.kind },
          env: {
            ...options.certificates?.env,
            ...options.runtimeEnv,
            ...(start.injects && pairEnv),
            ...(servesRuns && runsEnv),
          },
          network: this.network?.name ?? 'none',
          writable: sort === 'build' ? [] : this.writableOf(image),
          dns: options.dns ?? [],
          poolMemoryMiB: options.poolMemoryMiB,
          ...(options.certificates && { binds: options.certificates.binds }),
          ...(command && { command }),
          ...(socket && { socket: this.socketFile(id) }),
          ...(gpu && { gpu }),
          ...(shared && {
            shared: { pidNamespace: shared.pidNamespace, userId: firstPairUser + (number % pairUsers) },
          }),
        }),
      );
    } catch (error) {
      await socket?.close();
      // An engine that did not answer may still make the container.
      if (error instanceof EngineError && error.isUnreachable) this.removals.removeLater(name);
      throw error;
    }
    const remove = (): Promise<void> => this.remove(id, engineId, socket);
    const { clock } = options;
    const closing = this.closing.signal;
    const load = this.loader(start);
    const msContainer = shared?.id;
    const proxied = facts.labels[labels.traces] === 'true';
    const made = { id, engineId, spec, image, engine, clock, socket, closing, load, msContainer, proxied, remove };
    const started = await startContainer(made);
    this.containers.set(id, started);
    if (this.state !== 'open') {
      await started.destroy();
      throw new ProvisioningError('The container factory was closed.');
    }
    return started;
  }

  /** Folders that an image's program writes to, besides /tmp. */
  private writableOf(image: string): string[] {
    return Object.entries(this.options.writable ?? {})
      .filter(([prefix]) => image.startsWith(prefix))
      .flatMap(([, paths]) => paths);
  }

  /** The loader of a container's code, which compiles source first if the image has a build command. */
  private loader({ image, facts, sort }: Start): ContainerBody['load'] {
    const command = commandOf(facts, labels.build);
    if (!command || sort === 'build') return (request, _, init) => init(request);
    const build = { needs: isNativeSource, key: `${facts.id} ${command.join(' ')}`, image, facts, command };
    return (request, limits, init) => this.builds.init(build, request, limits, init);
  }

  private async remove(id: string, engineId: string, socket: RuntimeSocket | undefined): Promise<void> {
    this.containers.delete(id);
    await socket?.close();
    await this.removals.remove(engineId);
  }

  private async closeNetwork(): Promise<void> {
    try {
      await this.network?.close();
    } catch (error) {
      this.options.logger?.warn(`The network of the containers could not be removed: ${(error as Error).message}`);
    }
  }

  private folder(): string {
    return join(this.dataDir, 'docker');
  }

  private socketFile(id: string): string {
    return join(this.folder(), id);
  }
}

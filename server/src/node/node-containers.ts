import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Registry } from 'prom-client';
import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import type { Logger } from '@gpuwhisk/common/logging';
import type { RuntimeManifest, StemCell } from '@gpuwhisk/common/runtimes';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { ContainerFactory, GpuGrant } from '@gpuwhisk/invoker/containers/container-factory';
import { createDockerFactory } from '@gpuwhisk/invoker/containers/docker/docker-factory';
import { readImageCatalog } from '@gpuwhisk/invoker/containers/docker/images';
import { createMsContainerFactory } from '@gpuwhisk/invoker/containers/mscontainer/mscontainer-factory';
import { FunctionSnapshots } from '@gpuwhisk/invoker/containers/mscontainer/function-snapshots';
import { PairTemplates } from '@gpuwhisk/invoker/containers/mscontainer/pair-templates';
import type { GpuAccess } from '@gpuwhisk/invoker/containers/runtime-launch';
import { createProcessFactory } from '@gpuwhisk/invoker/containers/process/process-factory';
import type { StemCellConfig } from '@gpuwhisk/invoker/pool/stem-cells';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { openFunctionCertificates, withCertificates } from './function-certificates.js';

/** Services of a node for its containers. */
interface ContainerSurroundings {
  /** The invoker's number. */
  instance: number;
  /** Memory of the pool, MiB. */
  memoryMiB: number;
  /** Environment of every runtime, filled in before the first one starts. */
  runtimeEnv: Readonly<Record<string, string>>;
  gpuAccess(grant: GpuGrant): Promise<GpuAccess>;
  /** Serves the platform's API at an address of the host that containers reach; resolves with the port. */
  serve(address: string): Promise<number>;
}

/** The kinds of functions that a node runs, and the factories of their containers. */
export interface NodeCatalog {
  readonly manifest: RuntimeManifest;
  /** One line for each missing part, for the start-up. */
  readonly notes: readonly string[];
  /** Fetches the runtimes of functions whose kind names no version, if they are missing. Never rejects. */
  fetchDefaults(): Promise<void>;
  /** Does in the background the work that would delay a first use. Never rejects. */
  prepare(): Promise<void>;
  /** Shows how the runtimes were prepared. */
  showMetrics(registry: Registry): void;
  close(): Promise<void>;
  createFactory(surroundings: ContainerSurroundings): NodeFactory;
}

/** A factory that is not started, and the address where its started containers reach the server of `serve`. */
interface NodeFactory {
  factory: ContainerFactory;
  /** `address:port`; undefined if containers cannot reach it. */
  service(): string | undefined;
  /** Denies containers these addresses, and no longer those of the previous call. */
  denyNodes(addresses: readonly string[]): Promise<void>;
}

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The runtimes that the configuration asks for: this machine's, or images. Rejects with ConfigError. */
export function openCatalog(config: Config, logger: Logger): Promise<NodeCatalog> {
  return config.containers === 'docker' ? imageCatalog(config, logger) : machineCatalog(config, logger);
}

async function imageCatalog(config: Config, logger: Logger): Promise<NodeCatalog> {
  // The traffic of all containers comes from one link, so these rules would match none of them.
  if (Object.keys(config.network.namespaces).length > 0) {
    throw new ConfigError("'network.namespaces' is not available with containers of Docker.");
  }
  const file = resolve(config.runtimesManifest ?? join(root, 'docker', 'runtimes.json'));
  const { socket, network, writable, dns, localImages, callTimeoutMs } = config.docker;
  const catalog = await readImageCatalog(file, localImages);
  const certificates = await openFunctionCertificates(config.functionCertificates, config.dataDir);
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    manifest: catalog.manifest,
    notes: catalog.notes,
    fetchDefaults: nothing,
    prepare: nothing,
    showMetrics: () => undefined, // Images are complete.
    close: nothing,
    createFactory({ instance, memoryMiB, runtimeEnv, gpuAccess, serve }) {
      const factory = createDockerFactory({
        catalog,
        clock: systemClock,
        instance,
        network,
        writable,
        dns,
        runtimeEnv,
        gpuAccess,
        logger,
        egress: config.network,
        socketPath: socket,
        dataDir: config.dataDir,
        poolMemoryMiB: memoryMiB,
        serveContainers: serve,
        ...(certificates && { certificates }),
        timeouts: { callMs: callTimeoutMs },
      });
      return {
        factory,
        service: () => factory.containerService,
        denyNodes: (addresses) => factory.denyNodes(addresses),
      };
    },
  };
}

/** The part of the pool's memory that templates of pairs may take. */
const templatesPart = 8;

async function machineCatalog(config: Config, logger: Logger): Promise<NodeCatalog> {
  const clock = systemClock;
  const { dataDir, actionNetwork, network: egress } = config;
  const certificates = await openFunctionCertificates(config.functionCertificates, dataDir);
  const found = await createRuntimeCatalog({
    fetchesAll: config.fetchRuntimes,
    runtimesDir: join(root, 'runtimes'),
    ...(config.runtimesManifest !== undefined && { manifestFile: resolve(config.runtimesManifest) }),
    runtimePaths: config.runtimePaths,
    dataDir,
    requirementsMiB: config.requirementsMiB,
    clock,
    logger,
  });
  const catalog = withCertificates(found, certificates);
  let templates: PairTemplates | undefined;
  return {
    manifest: catalog.manifest,
    notes: catalog.notes,
    fetchDefaults: () => catalog.fetchDefaults(),
    prepare: () => catalog.prepare(),
    showMetrics(registry) {
      catalog.showMetrics(registry);
      templates?.show(registry);
    },
    close: () => catalog.close(),
    createFactory({ memoryMiB, runtimeEnv, gpuAccess, serve }) {
      const options = { catalog, clock, dataDir, actionNetwork, egress, runtimeEnv, gpuAccess, serveSandboxes: serve };
      const processes = createProcessFactory(options);
      const pairs = config.containers !== 'process';
      const snapshots = new FunctionSnapshots({ processes, dataDir, clock, logger });
      if (pairs && config.warm.templates) {
        templates = new PairTemplates({
          processes,
          dataDir,
          maxMiB: Math.floor(memoryMiB / templatesPart),
          clock,
          logger,
        });
      }
      return {
        factory: pairs
          ? createMsContainerFactory({ processes, catalog, logger, ...(templates && { templates, snapshots }) })
          : processes,
        service: () => processes.sandboxService,
        denyNodes: (addresses) => processes.denyNodes(addresses),
      };
    },
  };
}

const unitMs: Record<string, number> = { millisecond: 1, second: 1000, minute: 60_000, hour: 3_600_000 };

/** `256 MB` → 256. Throws ConfigError. */
function memoryMiB(text: string): number {
  const match = /^(\d+) *(MB|GB)$/i.exec(text);
  if (match === null) throw new ConfigError(`runtimes.json: '${text}' is no memory size such as '256 MB'`);
  return Number(match[1]) * (match[2]?.toUpperCase() === 'GB' ? 1024 : 1);
}

/** `2 minutes` → 120000. Throws ConfigError. */
function durationMs(text: string): number {
  const match = /^(\d+) *([a-z]+?)s?$/i.exec(text);
  const unit = unitMs[match?.[2]?.toLowerCase() ?? ''];
  if (match === null || unit === undefined)
    throw new ConfigError(`runtimes.json: '${text}' is no duration such as '2 minutes'`);
  return Number(match[1]) * unit;
}

function reactiveConfig(reactive: NonNullable<StemCell['reactive']>): NonNullable<StemCellConfig['reactive']> {
  const { minCount, maxCount, ttl, threshold, increment } = reactive;
  return { minCount, maxCount, ttlMs: durationMs(ttl), threshold, increment };
}

/** When the stem cells of these families start, ms: the start of the server is over by then. */
const startAfterMs: Record<string, number> = { native: 2000, java: 8000 };

/**
 * The stem cells that a manifest asks for. With `prepares` also those of runtimes whose first preparation takes long
 * (Java's is compiled), ahead of their first use. Throws ConfigError for a size or duration that cannot be read.
 */
export function stemCellConfigs(manifest: RuntimeManifest, prepares: boolean): StemCellConfig[] {
  const families = Object.entries(manifest.runtimes).filter(([family]) => prepares || family !== 'java');
  return families.flatMap(([family, entries]) =>
    entries.flatMap((entry) =>
      entry.stemCells.map((cell) => ({
        spec: bareSpec(entry.kind, memoryMiB(cell.memory)),
        initialCount: cell.initialCount,
        startAfterMs: startAfterMs[family] ?? 0,
        ...(cell.reactive !== undefined && { reactive: reactiveConfig(cell.reactive) }),
      })),
    ),
  );
}

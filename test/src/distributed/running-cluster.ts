import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A process of a cluster; the cluster restarts it whenever it ends. */
export interface Member {
  name: string;
  url: string;
  pid: number;
  /** Arguments of the process, besides its role and name. */
  args: readonly string[];
}

export interface Cluster {
  /** URL that leads to all controllers in rotation. */
  url: string;
  /** URL that leads to the consoles of all controllers in rotation. */
  consoleUrl: string;
  /** Key of an account with high limits. */
  auth: string;
  /** Key of the operator. */
  operatorAuth: string;
  controllers: Member[];
  invokers: Member[];
  redis: { pid: number; port: number };
  couchdb: { url: string };
  kafka: { brokers: string };
  stop(): Promise<void>;
}

/** Settings of a cluster, and the way from its processes to the engines. */
interface ClusterOptions {
  /** Further settings of all processes; `invokerSet`: of invokers. */
  set?: string[];
  invokerSet?: string[];
  /** Returns the port through which processes reach the Redis at `port`. */
  wayToRedis?: (port: number) => Promise<number>;
  /** The machine's address at which processes reach the engines. */
  engineHost?: string;
  /** The address that a process listens at, and the words that precede its command. */
  placeOf?: (name: string) => { host?: string | undefined; before?: string[] };
}

interface Starter {
  missingForCluster(): string[];
  startCluster(
    options: ClusterOptions & {
      dir: string;
      controllers: number;
      invokers: number;
      gpus: string;
      log?: (name: string, text: string) => void;
    },
  ): Promise<Cluster>;
}

const starter = (await import(new URL('../../../scripts/local-cluster.mjs', import.meta.url).href)) as Starter;

/** Programs that this machine lacks for a cluster; empty: none. */
export const missing = starter.missingForCluster();

/** Starts a cluster whose stop() also removes its files; `printed` returns the output of its processes. */
export async function startCluster(
  controllers: number,
  invokers: number,
  options: ClusterOptions = {},
): Promise<Cluster & { printed: () => string }> {
  const dir = await mkdtemp(join(tmpdir(), 'gpuwhisk-distributed-'));
  let text = '';
  const cluster = await starter.startCluster({
    ...options,
    ...{ dir, controllers, invokers, gpus: 'sim:a100-40' },
    // Small settings, so that tests measure the cluster and not the machine; functions of tests load no framework.
    set: ['userEvents=true', 'limits.gpuDefaultMemoryMiB=256', ...(options.set ?? [])],
    invokerSet: [...['containers=process', 'stemCells=false', 'poolMemoryMiB=1024'], ...(options.invokerSet ?? [])],
    log: (name, line) => (text = (text + `${name}: ${line}`).slice(-20_000)),
  });
  return {
    ...cluster,
    printed: () => text,
    stop: async () => {
      await cluster.stop();
      await rm(dir, { recursive: true });
    },
  };
}

const waitMs = 60_000;
const askAgainMs = 100;

/**
 * Calls `ask` until it returns a value; errors count as no value. Throws after `withinMs`, with `what` as the missing
 * event.
 */
export async function eventually<Result>(
  what: string,
  ask: () => Promise<Result | undefined>,
  withinMs = waitMs,
): Promise<Result> {
  const beganMs = performance.now();
  for (;;) {
    const found = await ask().catch(() => undefined);
    if (found !== undefined) return found;
    if (performance.now() - beganMs > withinMs) throw new Error(`It did not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, askAgainMs));
  }
}

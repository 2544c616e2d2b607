import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A process of a cluster; it is started again when it ends. */
export interface Member {
  name: string;
  url: string;
  pid: number;
  /** What it was started with, besides its role and name. */
  args: readonly string[];
}

export interface Cluster {
  /** Leads to all controllers by turns. */
  url: string;
  /** Of an account with room. */
  auth: string;
  controllers: Member[];
  invokers: Member[];
  redis: { pid: number; port: number };
  couchdb: { url: string };
  kafka: { brokers: string };
  stop(): Promise<void>;
}

/** What may come between a cluster's processes and what they are on. */
interface ClusterOptions {
  /** Settings of all, and of invokers, besides the tests' own. */
  set?: string[];
  invokerSet?: string[];
  /** Gives the port at which processes reach the Redis at `port`. */
  wayToRedis?: (port: number) => Promise<number>;
  /** The address of this machine where processes reach the engines. */
  engineHost?: string;
  /** The address that a process listens at, and words before its command. */
  placeOf?: (name: string) => { host?: string | undefined; before?: string[] };
}

interface Starter {
  missingForCluster(): string[];
  startCluster(
    options: ClusterOptions & {
      dir: string;
      controllers: number;
      invokers: number;
      log?: (name: string, text: string) => void;
    },
  ): Promise<Cluster>;
}

const starter = (await import(new URL('../../../scripts/local-cluster.mjs', import.meta.url).href)) as Starter;

/** What is missing for a cluster here; empty: nothing. */
export const missing = starter.missingForCluster();

/** Starts a cluster that leaves nothing behind when it stops; `printed` gives what its processes wrote. */
export async function startCluster(
  controllers: number,
  invokers: number,
  options: ClusterOptions = {},
): Promise<Cluster & { printed: () => string }> {
  const dir = await mkdtemp(join(tmpdir(), 'gpuwhisk-distributed-'));
  let text = '';
  const cluster = await starter.startCluster({
    ...options,
    ...{ dir, controllers, invokers },
    set: ['userEvents=true', ...(options.set ?? [])],
    // Small: so that what is tested is the cluster and not the machine.
    invokerSet: [
      ...['containers=process', 'stemCells=false', 'poolMemoryMiB=1024', 'gpus=sim:a100-40'],
      ...(options.invokerSet ?? []),
    ],
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

/** Asks until there is an answer; throws, saying `what` did not happen, after a minute. Failures count as none. */
export async function eventually<Result>(what: string, ask: () => Promise<Result | undefined>): Promise<Result> {
  const beganMs = performance.now();
  for (;;) {
    const found = await ask().catch(() => undefined);
    if (found !== undefined) return found;
    if (performance.now() - beganMs > waitMs) throw new Error(`It did not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, askAgainMs));
  }
}

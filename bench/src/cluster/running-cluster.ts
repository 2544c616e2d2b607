import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connectApi, headersOf, type Api } from '../api.js';
import type { BenchContext, Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { cpuTime, readTree, memoryOf } from '../processes.js';
import { median, slope } from '../statistics.js';

/** A process of the cluster; the cluster starts it again when it ends. */
export interface Member {
  name: string;
  url: string;
  pid: number;
}

interface StartedCluster {
  url: string;
  /** `uuid:key` of an account with high limits in namespace `guest`. */
  auth: string;
  controllers: Member[];
  invokers: Member[];
  kafka: { pid: number };
  redis: { pid: number; url: string };
  couchdb: { pid: number; url: string };
  stop(): Promise<void>;
}

/** A running cluster and access to it. */
export interface Cluster extends StartedCluster {
  headers: Readonly<Record<string, string>>;
  /** A client of controller `at`. */
  api(at: number): Api;
}

interface ClusterSize {
  controllers: number;
  invokers: number;
  /** Settings of the invokers, KEY=VALUE. */
  invokerSet?: readonly string[];
}

interface Starter {
  missingForCluster(): string[];
  startCluster(options: object): Promise<StartedCluster>;
}

/** Starts a cluster as `npm run cluster` does; cleanup stops it. Throws if an engine is missing. */
export async function startCluster(
  { cleanup, temporaryDir, say }: Pick<BenchContext, 'cleanup' | 'temporaryDir' | 'say'>,
  name: string,
  { controllers, invokers, invokerSet = [] }: ClusterSize,
): Promise<Cluster> {
  const script = pathToFileURL(join(repositoryDir, 'scripts', 'local-cluster.mjs')).href;
  const starter = (await import(script)) as Starter;
  const missing = starter.missingForCluster();
  if (missing.length > 0) throw new Error(`Missing for a cluster: ${missing.join(', ')}`);
  const started = await starter.startCluster({
    dir: join(temporaryDir, name),
    controllers,
    invokers,
    set: ['limits.concurrentInvocations=100000', 'limits.invocationsPerMinute=100000000', 'logLevel=warn'],
    invokerSet: ['stemCells=false', ...invokerSet],
    log: (member: string, text: string) => /"level":(50|60)/.test(text) && say(`  ${member}: ${text.slice(0, 300)}`),
  });
  cleanup.add('cluster', () => started.stop());
  const apis = new Map<number, Api>();
  cleanup.add('connections', () => {
    for (const api of apis.values()) api.close();
  });
  return Object.assign(started, {
    headers: headersOf(started.auth),
    api(at: number): Api {
      const member = started.controllers[at];
      if (member === undefined) throw new RangeError(`there is no controller ${at}`);
      const api = apis.get(at) ?? connectApi(member.url, started.auth);
      apis.set(at, api);
      return api;
    },
  });
}

/** Processor time of a cluster's processes so far, s. */
export function clusterCpu(cluster: Cluster): Record<string, number> {
  const of = (members: readonly { pid: number }[]) => members.map(({ pid }) => cpuTime(readTree(pid)));
  const server = (members: readonly { pid: number }[]) => of(members).reduce((sum, { serverS }) => sum + serverS, 0);
  return {
    controllers: server(cluster.controllers),
    invokers: server(cluster.invokers),
    sandboxes: of(cluster.invokers).reduce((sum, { sandboxesS }) => sum + sandboxesS, 0),
    kafka: server([cluster.kafka]),
    couchdb: server([cluster.couchdb]),
    redis: server([cluster.redis]),
  };
}

const memoryEveryMs = 2000;
const progressEvery = 5;

/** Measures the processes of a cluster until it is stopped. */
interface ClusterWatch {
  /**
   * Stops measuring. Returns memory and its trend in the second half, and processor seconds for 1,000 of `activations`.
   */
  stop(activations: number): Measurement[];
}

/**
 * Samples the memory of controllers and invokers; prints every ten seconds their processor use and the text of
 * `progress`.
 */
export function watchCluster(cluster: Cluster, say: (line: string) => void, progress: () => string): ClusterWatch {
  const members = [...cluster.controllers, ...cluster.invokers];
  const memory = new Map(members.map(({ name }) => [name, [] as (readonly [number, number])[]]));
  const beganMs = performance.now();
  const began = cpuOf(cluster);
  let [saidMs, said, samples] = [beganMs, began, 0];
  const sample = (): void => {
    const atS = (performance.now() - beganMs) / 1000;
    for (const { name, pid } of members) memory.get(name)?.push([atS, memoryOf(pid).rssMiB]);
    samples += 1;
    if (samples % progressEvery !== 0) return;
    const [nowMs, now] = [performance.now(), cpuOf(cluster)];
    const shares = Object.entries(now).map(([name, s]) => {
      const share = (s - (said[name] ?? 0)) / ((nowMs - saidMs) / 1000);
      return `${name} ${share.toFixed(2)}`;
    });
    say(`  ${atS.toFixed(0)} s: ${progress()}; processors: ${shares.join(', ')}`);
    [saidMs, said] = [nowMs, now];
  };
  const timer = setInterval(sample, memoryEveryMs);
  return {
    stop(activations) {
      clearInterval(timer);
      sample();
      const now = cpuOf(cluster);
      const later = new Map([...memory].map(([name, all]) => [name, all.slice(Math.floor(all.length / 2))]));
      const medians = [...later.values()].map((all) => median(all.map(([, rssMiB]) => rssMiB)));
      const trends = [...later].map(([name, all]) => ({ name, value: slope(all) * 60 }));
      return [
        { name: 'memoryMiB', value: medians.reduce((sum, one) => sum + one, 0) },
        { name: 'memoryTrendMiBPerMin', value: trends.reduce((sum, { value }) => sum + value, 0) },
        ...trends.map(({ name, value }) => ({ name: `memoryTrendMiBPerMin.${name}`, value })),
        ...Object.entries(now).map(([name, s]) => ({
          name: `loadCpuSPer1000.${name}`,
          value: ((s - (began[name] ?? 0)) * 1000) / Math.max(1, activations),
        })),
      ];
    },
  };
}

/**
 * Processor seconds of the cluster's processes and of this process, which sends the load and proxies the controllers.
 */
function cpuOf(cluster: Cluster): Record<string, number> {
  const { user, system } = process.cpuUsage();
  return { ...clusterCpu(cluster), bench: (user + system) / 1e6 };
}

const timeoutMs = 60_000;
const keysAtOnce = 1000;

/** The fields of a stored record that are read here. */
interface StoredRecord {
  activationId: string;
  start: number;
  response: { statusCode: number };
}

/** The stored records of these activations by id, read from the database directly. */
export async function storedRecords(
  { couchdb }: Pick<Cluster, 'couchdb'>,
  ids: readonly string[],
): Promise<Map<string, StoredRecord>> {
  const found = new Map<string, StoredRecord>();
  for (let from = 0; from < ids.length; from += keysAtOnce) {
    const keys = ids.slice(from, from + keysAtOnce).map((id) => `guest/${id}`);
    const answer = await fetch(`${couchdb.url}/whisk_local_activations/_all_docs?include_docs=true`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ keys }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!answer.ok) throw new Error(`the records could not be read: ${answer.status} ${await answer.text()}`);
    const { rows } = (await answer.json()) as { rows: { doc?: StoredRecord | null }[] };
    for (const { doc } of rows) if (doc) found.set(doc.activationId, doc);
  }
  return found;
}

/**
 * Waits until all records are stored, or until none has come for `quietMs`. Returns missing ids and the stored records.
 */
export async function untilStored(
  cluster: Pick<Cluster, 'couchdb'>,
  ids: readonly string[],
  quietMs: number,
): Promise<{ missing: string[]; records: Map<string, StoredRecord> }> {
  const records = new Map<string, StoredRecord>();
  let missing = [...ids];
  let lastMs = performance.now();
  while (missing.length > 0 && performance.now() - lastMs < quietMs) {
    const found = await storedRecords(cluster, missing);
    if (found.size > 0) lastMs = performance.now();
    for (const [id, record] of found) records.set(id, record);
    missing = missing.filter((id) => !found.has(id));
    if (missing.length > 0) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { missing, records };
}

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connectApi, headersOf, type Api } from '../api.js';
import type { BenchContext } from '../bench.js';
import { repositoryDir } from '../paths.js';
import { cpuTime, readTree } from '../processes.js';

/** A process of the cluster; it is started again when it ends. */
export interface Member {
  name: string;
  url: string;
  pid: number;
}

interface StartedCluster {
  url: string;
  /** `uuid:key` of an account with room, namespace `guest`. */
  auth: string;
  controllers: Member[];
  invokers: Member[];
  kafka: { pid: number };
  redis: { pid: number; url: string };
  couchdb: { pid: number; url: string };
  stop(): Promise<void>;
}

/** A cluster of a bench. */
export interface Cluster extends StartedCluster {
  headers: Readonly<Record<string, string>>;
  /** Of controller `at`. */
  api(at: number): Api;
}

export interface ClusterSize {
  controllers: number;
  invokers: number;
  /** Settings of the invokers, KEY=VALUE. */
  invokerSet?: readonly string[];
}

interface Starter {
  missingForCluster(): string[];
  startCluster(options: object): Promise<StartedCluster>;
}

/** Starts a cluster as `npm run cluster` does; it is stopped with the run. Throws where an engine is missing. */
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

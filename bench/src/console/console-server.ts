// A controller with the console and a cluster of simulated agents, each of which tells its devices once a second. Prints its
// URL and a key, and then runs until its input ends.
import { ActivityReporter } from '@gpuwhisk/common/activations/activity';
import type { DeviceStatus, NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import { createLogger } from '@gpuwhisk/common/logging';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { sites } from '@gpuwhisk/server/node/sites';
import { a100, setNode } from '@gpuwhisk/test/api/gpu-nodes';
import { operator, startApi } from '@gpuwhisk/test/api/harness';

/** The cluster, as JSON in the first argument. */
export interface ConsoleCluster {
  nodes: number;
  devicesPerNode: number;
  instancesPerDevice: number;
  activationsPerSecond: number;
}

/** Printed by the process, as JSON. */
export interface ConsoleServer {
  url: string;
  key: string;
}

const rowMs = 1000;
const functionCount = 200;

/** A node's row at one time: its devices are more and less busy. */
function rowOf(
  invoker: string,
  first: number,
  cluster: ConsoleCluster,
  busyAt: (device: number) => number,
): NodeStatus {
  const numbers = Array.from({ length: cluster.devicesPerNode }, (_, at) => first + at);
  const devices = numbers.map((number, index) => a100(`GPU-${number}`, { index }));
  const status = numbers.map((number): DeviceStatus => {
    const utilisation = busyAt(number);
    const usedMemoryMiB = Math.round(4096 + 16_384 * utilisation);
    const health = { state: 'healthy' as const, reasons: [] };
    return { uuid: `GPU-${number}`, at: Date.now(), usedMemoryMiB, utilisation, health, processes: [] };
  });
  const residents = numbers.flatMap((number) =>
    Array.from({ length: cluster.instancesPerDevice }, (_, at): Resident => {
      const name = `function-${(number * cluster.instancesPerDevice + at) % functionCount}`;
      const running = busyAt(number) * cluster.instancesPerDevice > at;
      return {
        container: `container-${number}-${at}`,
        action: `/guest/${name}`,
        namespace: 'guest',
        device: `GPU-${number}`,
        share: { shareClass: 30, smRequest: 0.2, smLimit: 0.3, memoryMiB: 8192 },
        memoryMiB: 8192,
        heldMiB: 6000,
        activations: running ? [`activation-${number}-${at}`] : [],
      };
    }),
  );
  return { invoker, version: 1, at: Date.now(), devices, status, residents };
}

async function serve(cluster: ConsoleCluster): Promise<void> {
  const api = await startApi({ sites });
  const random = seededRandom(1);
  const busy = new Map<number, number>();
  /** Changes with each second. */
  const busyAt = (device: number): number => busy.get(device) ?? 0;
  const tell = (node: number): void => {
    const first = node * cluster.devicesPerNode;
    for (let at = 0; at < cluster.devicesPerNode; at += 1) busy.set(first + at, randomFraction(random));
    void setNode(api.state, rowOf(`invoker${node}`, first, cluster, busyAt));
  };
  for (let node = 0; node < cluster.nodes; node += 1) {
    tell(node);
    setTimeout(() => setInterval(() => tell(node), rowMs), (node * rowMs) / cluster.nodes);
  }
  const logger = createLogger({ level: 'silent' });
  const reporter = new ActivityReporter({ state: api.state, clock: systemClock, logger });
  setInterval(() => {
    for (let count = 0; count < cluster.activationsPerSecond; count += 1) {
      const start = randomFraction(random) < 0.1 ? 'cold' : 'warm';
      const tookMs = 200 * randomFraction(random);
      reporter.ended({ namespace: 'guest', start, isFailed: false, sloMs: 150, tookMs });
    }
  }, 1000);
  const server: ConsoleServer = { url: api.consoleUrl, key: `${operator.uuid}:${operator.key}` };
  process.stdout.write(`${JSON.stringify(server)}\n`);
  process.stdin.resume().once('end', () => process.exit(0));
}

await serve(JSON.parse(process.argv[2] ?? '{}') as ConsoleCluster);

// A Kafka broker of one process (KRaft) from its Java packages, for tests and local clusters. Needs Java 17 and, once, Maven.
import { execFile, spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { createConnection, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { succeeds } from './quiet.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const pom = join(here, 'kafka-pom.xml');
const version = /kafka_2\.13<\/artifactId>\s*<version>([^<]+)</.exec(readFileSync(pom, 'utf8'))[1];
/** Where the broker's packages lie, once they are installed. */
export const libraryFolder = join(here, '..', '..', 'node_modules', '.cache', `kafka-${version}`);
const installTimeoutMs = 300_000;
const formatTimeoutMs = 60_000;
const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;
/**
 * Attempts at a start. Another program may take a port after it was chosen; Kafka's start then ends, mostly with a null
 * pointer.
 */
const mostStarts = 3;
/** Length of the output in the error of a failed start, characters. */
const shownLength = 3000;

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;

/** Whether startKafka can start a broker. */
export const hasKafka = () => existsSync(libraryFolder) && has('java');

/** Has Maven bring the broker's packages, once. Resolves with why it could not; undefined: they are there. */
export async function installKafka() {
  if (hasKafka()) return undefined;
  if (!has('java')) return 'there is no Java';
  if (!has('mvn')) return 'there is no Maven';
  const partial = `${libraryFolder}.${process.pid}`;
  const goal = ['-q', '-B', '-f', pom, 'dependency:copy-dependencies', `-DoutputDirectory=${partial}`];
  const isBrought = await succeeds('mvn', goal, { timeout: installTimeoutMs });
  try {
    if (!isBrought) return 'Maven could not bring its packages';
    if (!existsSync(libraryFolder)) renameSync(partial, libraryFolder);
    return undefined;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

const localhost = '127.0.0.1';

async function freePort() {
  const server = createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, localhost, resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function accepts(host, port) {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: 1000 });
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
    socket.once('timeout', () => end(false));
  });
}

/** For one machine: few threads and partitions; a broker that was killed is let in again after one second, not nine. */
const settings = ({ dir, host, port, own, quorum, node }) => `process.roles=broker,controller
node.id=${node + 1}
listeners=${own.protocol}://${host}:${port},CONTROLLER://${localhost}:${quorum.ports[node]}
advertised.listeners=${own.protocol}://${host}:${port}
listener.security.protocol.map=${own.protocol}:${own.protocol},CONTROLLER:PLAINTEXT
security.inter.broker.protocol=${own.protocol}
${own.lines.map((line) => `${line}\n`).join('')}controller.listener.names=CONTROLLER
controller.quorum.voters=${quorum.ports.map((at, index) => `${index + 1}@${localhost}:${at}`).join(',')}
log.dirs=${join(dir, 'data')}
auto.create.topics.enable=false
offsets.topic.replication.factor=${quorum.ports.length}
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
num.network.threads=2
num.io.threads=2
background.threads=2
log.index.size.max.bytes=1048576
log.cleaner.dedupe.buffer.size=4194304
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=${quorum.ports.length === 1 ? 1000 : 3000}
broker.heartbeat.interval.ms=250
`;

/** One that begins with a dash would be taken for a flag. */
const newClusterId = () => randomBytes(16).toString('base64url').replace(/^-/, 'A');

const java = (memory, program) => [
  ...memory,
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-cp',
  join(libraryFolder, '*'),
  ...program,
];

async function format(dir, config, clusterId) {
  const program = ['kafka.tools.StorageTool', 'format', '--cluster-id', clusterId, '--config', config];
  try {
    await promisify(execFile)('java', java(['-Xmx128m'], program), { timeout: formatTimeoutMs });
  } catch (error) {
    throw new Error(`Kafka's folder ${dir} could not be prepared: ${error.stderr || error.message}`, { cause: error });
  }
}

/**
 * Starts a broker whose data lies in the folder `dir`, which is made where it is missing: what an earlier broker left there
 * is served again. It ends with this process. A start that fails is repeated twice at most.
 * @param {{dir: string, host?: string, port?: number, heapMiB?: number, listener?: {protocol: string, lines: string[]}, env?: Record<string, string>, quorum?: {id: string, ports: number[]}, node?: number}} options
 *   `host`: where clients reach it, an address of this machine (default 127.0.0.1). `port` 0 or absent: a free one. `listener`: its protocol (default PLAINTEXT), and settings that this needs. `env`: variables of the broker's besides ours. `quorum` and `node`: of several, see startKafkas.
 * @returns {Promise<{brokers: string, port: number, pid: number, stop(): Promise<void>, kill(): Promise<void>}>}
 *   `brokers` as a client wants it; `stop` has it end in order, `kill` at once.
 */
export function startKafka(options) {
  return repeatedly(() => startOnce(options));
}

async function repeatedly(start) {
  for (let left = mostStarts; ; left--) {
    try {
      return await start();
    } catch (error) {
      if (left <= 1) throw error;
      console.error(`Kafka is started again: ${error.message}`);
    }
  }
}

async function startOnce({
  dir,
  host = localhost,
  port = 0,
  heapMiB = 256,
  listener = { protocol: 'PLAINTEXT', lines: [] },
  env = {},
  quorum,
  node = 0,
}) {
  mkdirSync(dir, { recursive: true });
  const brokerPort = port === 0 ? await freePort() : port;
  const config = join(dir, 'server.properties');
  const { id, ports } = quorum ?? { id: newClusterId(), ports: [await freePort()] };
  writeFileSync(config, settings({ dir, host, port: brokerPort, own: listener, quorum: { ports }, node }));
  if (!existsSync(join(dir, 'data', 'meta.properties'))) await format(dir, config, id);

  const logFile = join(dir, 'kafka.log');
  const saidBefore = existsSync(logFile) ? statSync(logFile).size : 0;
  const log = openSync(logFile, 'a');
  const program = java([`-Xms${heapMiB}m`, `-Xmx${heapMiB}m`], ['kafka.Kafka', config]);
  // Where that is possible, the broker ends with us even if we are killed.
  const [command, args] = has('setpriv') ? ['setpriv', ['--pdeathsig', 'KILL', 'java', ...program]] : ['java', program];
  // Ctrl-C in a terminal is for the process that started it, which still needs it while it stops.
  const child = spawn(command, args, {
    stdio: ['ignore', log, log],
    detached: has('setpriv'),
    env: { ...process.env, ...env },
  });
  closeSync(log);
  const exited = new Promise((resolve) => child.once('exit', resolve).once('error', resolve));
  const killNow = () => child.kill('SIGKILL');
  process.once('exit', killNow);
  void exited.then(() => process.off('exit', killNow));

  const end = async (signal) => {
    child.kill(signal);
    const late = setTimeout(killNow, stopTimeoutMs);
    await exited;
    clearTimeout(late);
  };
  const untilMs = performance.now() + startTimeoutMs;
  while (!(await accepts(host, brokerPort))) {
    const ended = child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
    if (ended || performance.now() > untilMs) {
      if (!ended) await end('SIGKILL');
      const said = readFileSync(logFile).subarray(saidBefore).toString();
      // The cause comes first, and consequences follow.
      throw new Error(`Kafka did not start:\n${said.slice(0, shownLength)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    brokers: `${host}:${brokerPort}`,
    port: brokerPort,
    pid: child.pid,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

/**
 * Starts `count` brokers that are one Kafka. `env` gives the variables of broker number `node`, from 0 on.
 * @param {{dir: string, count: number, heapMiB?: number, env?: (node: number) => Record<string, string>}} options
 * @returns {Promise<{brokers: string, nodes: Awaited<ReturnType<typeof startKafka>>[], restart(...nodes: number[]): Promise<void>}>}
 *   `nodes[i]` is the broker with node.id i + 1; `restart` starts those that have ended, where they were.
 */
export function startKafkas(options) {
  return repeatedly(() => startAllOnce(options));
}

async function startAllOnce({ dir, count, heapMiB = 192, env = () => ({}) }) {
  const quorum = { id: newClusterId(), ports: [] };
  const ports = [];
  for (let node = 0; node < count; node++) {
    quorum.ports.push(await freePort());
    ports.push(await freePort());
  }
  const folderOf = (node) => join(dir, `broker${node}`);
  const start = (node) => startOnce({ dir: folderOf(node), port: ports[node], heapMiB, env: env(node), quorum, node });
  const begun = await Promise.allSettled(ports.map((_, node) => start(node)));
  const failed = begun.find(({ status }) => status === 'rejected');
  const nodes = begun.flatMap(({ value }) => (value === undefined ? [] : [value]));
  if (failed !== undefined) {
    await Promise.all(nodes.map((node) => node.kill()));
    // Those of the next attempt have other ports and another identity.
    for (const node of ports.keys()) rmSync(folderOf(node), { recursive: true, force: true });
    throw failed.reason;
  }
  return {
    brokers: nodes.map(({ brokers }) => brokers).join(','),
    nodes,
    async restart(...ended) {
      await Promise.all(
        ended.map(async (node) => {
          nodes[node] = await repeatedly(() => start(node));
        }),
      );
    },
  };
}

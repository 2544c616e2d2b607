// A cluster on this machine: its engines, controllers, invokers, and one address for the API.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { hasKafka, startKafka } from './engines/kafka.mjs';
import { findsRedis, startRedis } from './engines/redis.mjs';
import { root } from './fresh.mjs';

const localhost = '127.0.0.1';
const prefix = 'whisk_local_';
const main = join(root, 'bin', 'gpuwhisk');
const couchdb = join(root, 'test', 'engines', 'couchdb-server.cjs');
const readyMs = 90_000;
const restartMs = 500;
const stopMs = 20_000;
const hasSetpriv = spawnSync('sh', ['-c', 'command -v setpriv']).status === 0;

/** The programs that a cluster on this machine lacks; empty if none is missing. */
export function missingForCluster() {
  return [
    ...(hasKafka() ? [] : ['Kafka']),
    ...(findsRedis() ? [] : ['redis-server']),
    ...(existsSync(join(root, 'test', 'engines', 'node_modules', 'express-pouchdb')) ? [] : ["CouchDB's protocol"]),
  ];
}

/**
 * Starts a Node.js program that ends with this process; `before` are words before its command, such as those of `env`.
 */
function startNode(args, options, before = []) {
  const command = [...before, process.execPath, ...args];
  const [program, ...rest] = hasSetpriv ? ['setpriv', '--pdeathsig', 'KILL', ...command] : command;
  // In a session of its own: Ctrl-C in a terminal is for this process alone, which stops the others in their order.
  return spawn(program, rest, {
    ...options,
    detached: hasSetpriv,
    env: { ...process.env, ...options.env, NODE_OPTIONS: '' },
  });
}

const exitOf = (child) =>
  new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code)).once('error', resolve));

async function freePort() {
  const server = createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, localhost, resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The first output of `child` that matches; rejects if the child ends before, or takes too long. */
function output(child, pattern, name) {
  return new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`${name} was not ready in time:\n${text}`)), readyMs);
    const end = (settle, value) => {
      clearTimeout(timer);
      settle(value);
    };
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (data) => {
        text = (text + data).slice(-4000);
        const match = pattern.exec(text);
        if (match !== null) end(resolve, match);
      });
    }
    void exitOf(child).then((code) => end(reject, new Error(`${name} ended with ${code}:\n${text}`)));
  });
}

async function startCouchdb(host) {
  const child = startNode([couchdb, '0', '', host], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [, port] = await output(child, /(\d+)\s/, 'the CouchDB-protocol server');
  const exited = exitOf(child);
  return {
    url: `http://${host}:${port}`,
    pid: child.pid,
    stop: () => {
      child.stdin.end();
      return exited;
    },
  };
}

/** A process of the cluster, which is started again when it ends, as systemd would. */
class Member {
  #stopping = false;
  #timer;

  constructor(role, name, args, log, before, env) {
    Object.assign(this, { role, name, args, log, before, env });
  }

  async start() {
    const args = [main, this.role, '--name', this.name, ...this.args];
    const options = { stdio: ['ignore', 'pipe', 'pipe'], env: this.env };
    const child = (this.child = startNode(args, options, this.before));
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => this.log(this.name, String(data)));
    this.exited = exitOf(child).then((how) => {
      if (this.#stopping) return;
      this.log(this.name, `ended with ${how}; it is started again.\n`);
      this.#timer = setTimeout(() => void this.start().catch(() => undefined), restartMs);
    });
    const [, url] = await output(child, /is ready at (http:\S+)/, this.name);
    this.url = url;
  }

  get pid() {
    return this.child.pid;
  }

  async stop() {
    this.#stopping = true;
    clearTimeout(this.#timer);
    this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), stopMs);
    await this.exited;
    clearTimeout(late);
  }
}

/** One address for several servers: each connection goes to the next server that accepts it. */
async function startProxy(addresses) {
  let turn = 0;
  const sockets = new Set();
  const server = createServer((client) => {
    sockets.add(client);
    client.once('close', () => sockets.delete(client));
    client.on('error', () => client.destroy());
    const pass = (left) => {
      const onward = connect(addresses[turn++ % addresses.length]);
      let isConnected = false;
      onward.once('connect', () => {
        isConnected = true;
        client.pipe(onward).pipe(client);
      });
      onward.on('error', () => {
        if (isConnected || left <= 1) client.destroy();
        else pass(left - 1);
      });
      client.once('close', () => onward.destroy());
      onward.once('close', () => isConnected && client.destroy());
    };
    pass(addresses.length);
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, localhost, resolve));
  return {
    url: `http://${localhost}:${server.address().port}`,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Stores an account with a new random key. */
async function createAccount(couchdbUrl, name) {
  const auth = newKey();
  const [uuid, key] = auth.split(':');
  const limits = { invocationsPerMinute: 1_000_000, concurrentInvocations: 1000, firesPerMinute: 1_000_000 };
  for (const document of [
    { _id: name, subject: name, namespaces: [{ name, uuid, key }] },
    { _id: `${name}/limits`, ...limits },
  ]) {
    const answer = await fetch(`${couchdbUrl}/${prefix}subjects`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(document),
    });
    if (!answer.ok) throw new Error(`the account could not be stored: ${answer.status} ${await answer.text()}`);
  }
  return auth;
}

/** A key of `uuid:secret` that is new. */
const newKey = () => `${randomUUID()}:${randomBytes(48).toString('base64url')}`;

/**
 * Starts a cluster whose data lies in the folder `dir`. `set` are settings of all its processes (KEY=VALUE),
 * `invokerSet` of its invokers, `gpus` the GPUs of each. `log(name, text)` is called with their output. A test can put a proxy between:
 * `wayToRedis(port)` gives the port at which the processes reach Redis, `engineHost` is the address of this machine
 * where they reach the engines. `placeOf(name)` gives the address that a process listens at and words before its
 * command.
 * Gives `{ url, consoleUrl, auth, operatorAuth, controllers, invokers, redis, kafka, couchdb, stop }`; members have `name`, `url`, `pid`.
 */
export async function startCluster({
  dir,
  controllers: controllerCount = 2,
  invokers: invokerCount = 3,
  set = [],
  invokerSet = [],
  gpus = 'none',
  log = () => undefined,
  wayToRedis = (port) => port,
  engineHost = localhost,
  placeOf = () => ({}),
}) {
  const stops = [];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  const started = (starting) => {
    // A member that is still starting when another member fails to start is stopped, too.
    stops.push(() =>
      starting.then(
        (engine) => engine.stop(),
        () => undefined,
      ),
    );
    return starting;
  };
  try {
    mkdirSync(join(dir, 'redis'), { recursive: true });
    const [kafka, redis, couch] = await Promise.all([
      started(startKafka({ dir: join(dir, 'kafka'), host: engineHost })),
      started(startRedis({ dir: join(dir, 'redis'), host: engineHost })),
      started(startCouchdb(engineHost)),
    ]);
    const settings = (all) => all.flatMap((setting) => ['--set', setting]);
    const redisUrl = `redis://${engineHost}:${await wayToRedis(redis.port)}`;
    const shared = ['--kafka', kafka.brokers, '--redis', redisUrl, '--couchdb', couch.url, '--couchdb-prefix', prefix];
    const addresses = [];
    while (addresses.length < controllerCount) {
      const { host = localhost } = placeOf(`controller-${addresses.length}`);
      addresses.push({ host, port: await freePort(), consolePort: await freePort() });
    }
    const proxy = await started(startProxy(addresses));
    const consoles = addresses.map(({ host, consolePort }) => ({ host, port: consolePort }));
    const consoleProxy = await started(startProxy(consoles));
    const operatorAuth = newKey();
    const common = (name) => [...shared, '--data', join(dir, name), ...settings([`apiHost=${proxy.url}`, ...set])];
    const memory = `poolMemoryMiB=${Math.floor((totalmem() * 0.6) / 1024 / 1024 / invokerCount)}`;
    const member = (role, name, args) => {
      const { host = localhost, before = [] } = placeOf(name);
      // In no command line, which others of this machine can read.
      const env = role === 'controller' ? { GPUWHISK_OPERATOR_KEY: operatorAuth } : {};
      return new Member(role, name, ['--host', host, ...args], log, before, env);
    };
    const controllers = addresses.map(({ port, consolePort }, at) =>
      member('controller', `controller-${at}`, [
        ...common(`controller-${at}`),
        ...settings(['gatewayPort=false', `consolePort=${consolePort}`, `consoleUrl=${consoleProxy.url}`]),
        ...['--port', String(port)],
      ]),
    );
    const invokers = Array.from({ length: invokerCount }, (_, at) =>
      member('invoker', `invoker-${at}`, [
        ...common(`invoker-${at}`),
        // All addresses are loopback: the same as one server that listens there.
        ...settings([
          memory,
          `gpus=${gpus}`,
          'prepareRuntimes=false',
          'fetchRuntimes=false',
          'allowWeakIsolation=true',
          ...invokerSet,
        ]),
        ...['--port', '0'],
      ]),
    );
    // The first controller makes the databases.
    const [first, ...others] = controllers;
    await started(first.start().then(() => first));
    await Promise.all([...others, ...invokers].map((each) => started(each.start().then(() => each))));
    const auth = await createAccount(couch.url, 'guest');
    await untilUp(proxy.url, invokerCount);
    return {
      url: proxy.url,
      consoleUrl: consoleProxy.url,
      auth,
      operatorAuth,
      controllers,
      invokers,
      redis,
      kafka,
      couchdb: couch,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Resolves when every controller counts `count` invokers as up. */
async function untilUp(url, count) {
  const until = Date.now() + readyMs;
  for (let seen = 0; seen < 3;) {
    if (Date.now() > until) throw new Error('the invokers did not come up in time');
    const healthy = await fetch(`${url}/invokers/healthy/count`, { headers: { connection: 'close' } })
      .then((answer) => answer.json())
      .catch(() => 0);
    seen = healthy === count ? seen + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

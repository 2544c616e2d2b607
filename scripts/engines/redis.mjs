// A Redis of one's own for tests and for the local cluster: on 127.0.0.1, nothing on disk unless it is asked to.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;

/** Whether there is a redis-server to start now: npm run test:all and npm run cluster -- --install install Debian's. */
export const findsRedis = () => has('redis-server');
/** Whether there was one when this was loaded. */
export const hasRedis = findsRedis();

const startMs = 20_000;
const attempts = 5;

/**
 * Starts redis-server in the folder `dir`, at the address `host` of this machine, on `port` or one that is free. It ends with the
 * process that started it. `env` is added to its environment, `args` to its command line. Gives `{ url, port, pid, stop }`; `stop` resolves when it has ended.
 */
export async function startRedis({ dir, host = '127.0.0.1', port, env = {}, args = [] }) {
  for (let attempt = 1; ; attempt++) {
    const started = await tryToStart(dir, host, port ?? (await freePort()), env, args);
    if (started !== undefined) return started;
    // Another process took the port meanwhile.
    if (port !== undefined || attempt === attempts) throw new Error('redis-server did not start');
  }
}

async function tryToStart(dir, host, port, env, more) {
  const args = [
    'redis-server',
    '--port',
    port,
    '--bind',
    host,
    '--protected-mode',
    'no',
    '--dir',
    dir,
    '--save',
    '',
    '--appendonly',
    'no',
    ...more,
  ];
  const command = has('setpriv') ? ['setpriv', '--pdeathsig', 'KILL', ...args] : args;
  const child = spawn(command[0], command.slice(1).map(String), {
    stdio: 'ignore',
    // Ctrl-C in a terminal is for the process that started it, which still needs it while it stops.
    detached: has('setpriv'),
    env: { ...process.env, ...env },
  });
  const exited = once(child, 'exit');
  let isOver = false;
  void exited.then(() => (isOver = true));
  const until = Date.now() + startMs;
  while (!isOver && Date.now() < until) {
    if (await answers(host, port)) {
      return {
        url: `redis://${host}:${port}`,
        port,
        pid: child.pid,
        async stop() {
          child.kill('SIGKILL');
          await exited;
        },
      };
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  child.kill('SIGKILL');
  await exited;
  return undefined;
}

/** Whether a Redis says PONG. */
function answers(host, port) {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port }, () => socket.write('PING\r\n'));
    socket.setTimeout(1000, () => socket.destroy());
    socket.on('data', (data) => {
      resolve(data.toString().startsWith('+PONG'));
      socket.destroy();
    });
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
  });
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

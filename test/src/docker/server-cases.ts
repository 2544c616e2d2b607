// The server's image, run as in docker/compose.yaml.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { missing, startCluster } from '../distributed/running-cluster.js';
import { ApiClient } from '../support/api-client.js';
import { until } from '../support/running-platform.js';
import { images } from './built-images.js';
import type { DockerEngine } from './docker-engine.js';

const testMs = 240_000;
const readyMs = 90_000;

/** Whether the server's image is made and run here: Docker's builder makes the image of Java before it. */
export const canServe = (hasJava: boolean): boolean => missing.length === 0 && hasJava;

/** A controller and an invoker in containers of the server's image; its functions are in containers of our images. */
export function serverCases(engine: () => DockerEngine, hasJava: boolean): void {
  (canServe(hasJava) ? describe : describe.skip)('the image of the server', () => {
    test(
      'is a controller and an invoker of a cluster, whose functions are containers beside them',
      async () => {
        const { docker, socketPath } = engine();
        // This machine's controller creates the databases and an account.
        const cluster = await startCluster(1, 0);
        // The engine mounts sockets of this folder into functions' containers: the folder has the same path everywhere.
        const data = mkdtempSync(join(tmpdir(), 'gpuwhisk-image-'));
        const start = async (role: 'controller' | 'invoker', flags: string[], settings: string[]): Promise<string> => {
          const engines = ['--couchdb', cluster.couchdb.url, '--kafka', cluster.kafka.brokers];
          const redis = ['--redis', `redis://127.0.0.1:${cluster.redis.port}`];
          const own = ['--name', `${role}-in-container`, '--data', join(data, role), '--port', '0'];
          const set = [`apiHost=${cluster.url}`, ...settings].flatMap((setting) => ['--set', setting]);
          const run = ['run', '--detach', '--network', 'host', '--volume', `${data}:${data}`, ...flags, images.server];
          const id = (await docker([...run, role, ...engines, ...redis, ...own, ...set])).trim();
          let url: string | undefined;
          await until(
            `the ${role} is ready`,
            async () => {
              const printed = await docker(['logs', id]);
              url = /is ready at (http:\S+)/.exec(printed)?.[1];
              if (url === undefined && (await docker(['ps', '-q', '--no-trunc'])).includes(id) === false) {
                throw new Error(`The ${role} ended: ${printed}`);
              }
              return url !== undefined;
            },
            readyMs,
          );
          return url ?? '';
        };
        try {
          const controller = await start('controller', [], ['gatewayPort=false']);
          const invoker = await start(
            'invoker',
            ['--cap-add', 'NET_ADMIN', '--volume', `${socketPath}:/var/run/docker.sock`],
            [
              ...['containers=docker', 'stemCells=false', 'gpus=none', 'poolMemoryMiB=1024'],
              'runtimesManifest=/opt/gpuwhisk/docker/runtimes.json',
            ],
          );
          for (const url of [controller, invoker]) expect(await (await fetch(`${url}/ping`)).text()).toBe('pong');
          const healthy = async (): Promise<boolean> =>
            (await (await fetch(`${controller}/invokers/healthy/count`)).json()) === 1;
          await until('the invoker is up', healthy, readyMs);
          const api = new ApiClient(controller, cluster.auth);
          await api.putAction('hello', 'function main({ name }) { return { hello: name }; }', {
            kind: 'nodejs:22',
          });
          expect(await api.invokeForResult('hello', { name: 'you' })).toMatchObject({
            status: 200,
            body: { hello: 'you' },
          });
        } finally {
          const ids = (await docker(['ps', '-q', '--filter', `ancestor=${images.server}`])).split('\n');
          for (const id of ids.filter((one) => one !== '')) await docker(['stop', id]);
          await cluster.stop();
          rmSync(data, { recursive: true, force: true });
        }
      },
      testMs,
    );
  });
}

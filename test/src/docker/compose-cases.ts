// docker/compose.yaml, started by an operator's commands.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { missing } from '../distributed/running-cluster.js';
import { ApiClient, logTexts } from '../support/api-client.js';
import { until } from '../support/running-platform.js';
import { composeCluster, hasCompose } from './compose-cluster.js';
import type { ComposeCluster } from './compose-cluster.js';
import type { DockerEngine } from './docker-engine.js';
import { buildEngineImages } from './engine-images.js';

const wskadmin = fileURLToPath(new URL('../../../bin/wskadmin', import.meta.url));
const commandMs = 60_000;
const readyMs = 180_000;
const testMs = 420_000;

const codes = {
  'nodejs:22': 'function main({ name }) { console.log("hi"); return { hello: name }; }',
  'python:3.11': 'def main(args):\n    print("hi")\n    return {"hello": args["name"]}\n',
};
const asking = `async function main() {
  const headers = { authorization: 'Basic ' + Buffer.from(process.env.__OW_API_KEY).toString('base64') };
  const answer = await fetch(process.env.__OW_API_HOST + '/api/v1/namespaces', { headers });
  return { namespaces: await answer.json() };
}`;

/** A function that tries to connect to the engines and to the host. */
const reaching = `async function main({ places }) {
  const attempt = ([host, port]) => new Promise((resolve) => {
    const socket = require('node:net').connect({ host, port, timeout: 1000 });
    const end = (how) => { socket.destroy(); resolve(how); };
    socket.once('connect', () => end('connected')).once('timeout', () => end('dropped')).once('error', ({ code }) => end(code));
  });
  return { reached: await Promise.all(places.map(attempt)) };
}`;

/** Makes an account by the documentation's commands; resolves with its key. */
async function makeAccount(url: string, operator: string): Promise<string> {
  const args = [wskadmin, '--apihost', url, '--auth', operator, 'user', 'create', 'carol'];
  const env = { ...process.env, NODE_OPTIONS: '' };
  return (await promisify(execFile)(process.execPath, args, { env, timeout: commandMs })).stdout.trim();
}

async function runFunctions(api: ApiClient): Promise<void> {
  for (const [at, [kind, code]] of Object.entries(codes).entries()) {
    await api.putAction(`hello${at}`, code, { kind });
    const { status, record } = await api.run(`hello${at}`, { name: kind });
    expect({ status, result: record.response.result, logs: logTexts(record) }).toEqual({
      status: 200,
      result: { hello: kind },
      logs: ['hi'],
    });
  }
  await api.putAction('asking', asking, { kind: 'nodejs:22', annotations: { 'provide-api-key': true } });
  expect((await api.invokeForResult('asking')).body).toEqual({ namespaces: ['carol'] });
}

/**
 * A function reaches neither CouchDB, Kafka, Redis and nginx, by their addresses in the other network, nor the host in
 * that network.
 */
async function reachNone(api: ApiClient, backend: string): Promise<void> {
  const places = [
    [`${backend}.10`, 5984],
    [`${backend}.10`, 6984],
    [`${backend}.11`, 9092],
    [`${backend}.12`, 6379],
    [`${backend}.13`, 3233],
    [`${backend}.13`, 3235],
    [`${backend}.1`, 22],
  ];
  await api.putAction('reaching', reaching, { kind: 'nodejs:22' });
  const { body } = await api.invokeForResult('reaching', { places });
  expect(body).toEqual({ reached: places.map(() => 'dropped') });
}

/** The console is at its own address, which has no web actions; the API's names its port. */
async function servesConsole(url: string, consoleUrl: string): Promise<void> {
  expect(await (await fetch(`${consoleUrl}/console/`)).text()).toContain('<title>');
  expect((await fetch(`${consoleUrl}/api/v1/web/carol/default/hello0.json`)).status).toBe(401);
  const moved = await fetch(`${url}/console`, { redirect: 'manual' });
  expect([moved.status, await moved.text()]).toEqual([404, expect.stringContaining('port 3235 of this host')]);
}

/** Ends a service's process as a crash does: the engine starts it again. */
async function crash({ inspect }: ComposeCluster, service: string, whileDown: () => Promise<void>): Promise<void> {
  const before = await inspect(service);
  process.kill(before.pid, 'SIGKILL');
  // A request that is sent while the process ends is lost: no proxy may repeat a POST.
  await until(`${service} has ended`, () => !existsSync(`/proc/${before.pid}`));
  await whileDown();
  const isBack = async (): Promise<boolean> => (await inspect(service)).starts > before.starts;
  await until(`${service} is ready again`, isBack, readyMs);
}

/** Whether docker/compose.yaml is started here: the image of Java is made before the server's. */
export const canCompose = (hasJava: boolean): boolean => hasCompose && missing.length === 0 && hasJava;

/** `java` gives the launch of this machine's Java, for the image of Kafka; undefined if the machine has none. */
export function composeCases(engine: () => DockerEngine, java: (() => Promise<RuntimeLaunch>) | undefined): void {
  (canCompose(java !== undefined) ? describe : describe.skip)('docker/compose.yaml', () => {
    test(
      'is a cluster that makes accounts, runs functions, outlives crashes, and goes without a trace',
      async () => {
        if (java === undefined) throw new Error('There is no Java.');
        const { docker } = engine();
        const listed = async (): Promise<string> =>
          (await docker(['ps', '-aq'])) +
          (await docker(['network', 'ls', '-q'])) +
          (await docker(['volume', 'ls', '-q']));
        await buildEngineImages(engine(), await java());
        const before = await listed();
        const cluster = composeCluster(engine());
        try {
          await cluster.compose('up', '-d');
          const url = await cluster.address();
          const oneSaysBoth = async (): Promise<boolean> => {
            const answer = await fetch(`${url}/invokers/healthy/count`).catch(() => undefined);
            return answer?.status === 200 && (await answer.json()) === 2;
          };
          // The proxy sends requests to the controllers in turn: several requests reach each.
          const bothUp = async (): Promise<boolean> => {
            for (let asked = 0; asked < 6; asked++) if (!(await oneSaysBoth())) return false;
            return true;
          };
          await until('both invokers are up', bothUp, readyMs);
          const api = new ApiClient(url, await makeAccount(url, cluster.operator));
          await runFunctions(api);
          await reachNone(api, cluster.backend);
          await servesConsole(url, await cluster.consoleAddress());

          const isServed = async (): Promise<void> => {
            expect(await api.invokeForResult('hello0', { name: 'you' })).toMatchObject({
              status: 200,
              body: { hello: 'you' },
            });
          };
          await crash(cluster, 'controller0', isServed);
          // A started controller learns within seconds which invokers are up; before that it can send to none.
          await until('the controller that is back knows both invokers', bothUp, readyMs);
          await crash(cluster, 'invoker0', isServed);
          await until('both invokers are up again', bothUp, readyMs);
          await isServed();
        } catch (error) {
          // The test reports the first failure, also if this command fails.
          await cluster.compose('down', '-v').catch(() => undefined);
          throw error;
        }
        await cluster.compose('down', '-v');
        expect(await listed()).toBe(before);
      },
      testMs,
    );
  });
}

import { spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { kind, spec } from '../contract/container-calls.js';
import { initialized, run } from '../contract/containers/cases.js';
import { httpKind, openDockerFactory } from './docker-harness.js';
import type { DockerHarness } from './docker-harness.js';
import type { DockerEngine } from './docker-engine.js';

const MiB = 1024 * 1024;
/** Time to wait for a connection that a rule drops, ms. */
const patienceMs = 1000;
const nobody = 65_534;

/** Body of a function with `require`, `host` and `port` that returns how far a connection gets. */
const attempt = `return new Promise((resolve) => {
  const socket = require('net').connect({ host, port, timeout: ${patienceMs} });
  const end = (how) => { socket.destroy(); resolve(how); };
  socket.once('connect', () => end('connected')).once('timeout', () => end('dropped')).once('error', ({ code }) => end(code));
});`;

/** Tries the connection as another user of this machine. */
function attemptAs(uid: number, host: string, port: number): string {
  const text = `(async (host, port) => { ${attempt} })(${JSON.stringify(host)}, ${port}).then((how) => process.stdout.write(how));`;
  // By its path another user might not reach the program.
  const { stdout, stderr } = spawnSync('/proc/self/exe', ['-e', text], { uid, gid: uid, cwd: '/', encoding: 'utf8' });
  return stdout || stderr;
}

async function evaluated(container: Container, script: string): Promise<unknown> {
  const outcome = await run(container, { do: 'script', script }).outcome;
  if (outcome.type !== 'result') throw new Error(JSON.stringify(outcome));
  return (outcome.result as { value?: unknown }).value ?? outcome.result;
}

const attemptFrom = (container: Container, host: string, port: number): Promise<unknown> =>
  evaluated(container, `const host = ${JSON.stringify(host)}, port = ${port}; ${attempt}`);

interface Inspected {
  HostConfig: { PidsLimit: number; IpcMode: string; ReadonlyRootfs: boolean };
  NetworkSettings: { Networks: Record<string, { IPAddress: string; Gateway: string }> };
}

/** Isolation of containers of different functions from each other and from the host. */
export function isolationCases(engine: () => DockerEngine): void {
  const using = async (use: (harness: DockerHarness) => Promise<void>): Promise<void> => {
    const servers: Server[] = [];
    const serveContainers = async (address: string): Promise<number> => {
      const server = createServer((socket) => socket.end()).listen(0, address);
      servers.push(server);
      await new Promise((resolve) => server.once('listening', resolve));
      return (server.address() as AddressInfo).port;
    };
    const harness = await openDockerFactory(engine(), { serveContainers });
    try {
      await use(harness);
    } finally {
      await harness.close();
      for (const server of servers) server.close();
    }
  };
  const inspect = async ({ id }: Container): Promise<Inspected> => {
    const ids = (await engine().docker(['ps', '-q', '--filter', `name=^${id}_`])).trim();
    const [inspected] = JSON.parse(await engine().docker(['inspect', ids])) as [Inspected];
    return inspected;
  };
  const addressOf = async (container: Container): Promise<string> =>
    Object.values((await inspect(container)).NetworkSettings.Networks)[0]?.IPAddress ?? '';
  const tables = (): string => spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout;

  describe('isolation', () => {
    test('a container reaches the API, but no other container and nothing else of the host', () =>
      using(async (harness) => {
        const { factory, notes } = harness;
        expect(notes).toEqual([]);
        const [service = '', port = ''] = factory.containerService?.split(':') ?? [];
        const listening = createServer((socket) => socket.end()).listen(0, '0.0.0.0');
        await new Promise((resolve) => listening.once('listening', resolve));
        const own = (listening.address() as AddressInfo).port;
        const second = await openDockerFactory(engine(), { instance: 1 });
        const other = ['run', '--detach', '--network', engine().network, 'gpuwhisk/test-http:1'];
        const bystander = (await engine().docker(other)).trim();
        try {
          const caller = await initialized(factory);
          const [neighbour, stranger] = await Promise.all(
            [factory, second.factory].map((each) => each.create({ ...spec, kind: httpKind })),
          );
          const [near, far] = await Promise.all([addressOf(neighbour as Container), addressOf(stranger as Container)]);
          const format = `{{.NetworkSettings.Networks.${engine().network}.IPAddress}}`;
          const aside = (await engine().docker(['inspect', '--format', format, bystander])).trim();
          // The guest listens some time after its start.
          const deadline = performance.now() + 10_000;
          for (const address of [near, aside]) {
            while (attemptAs(0, address, 8080) !== 'connected') expect(performance.now()).toBeLessThan(deadline);
          }
          expect(attemptAs(nobody, near, 8080)).toBe('dropped');
          // A container runs one invocation at a time.
          const reached: Record<string, unknown> = {};
          for (const [name, host, at] of [
            ['neighbour', near, 8080],
            ['container of another platform', far, 8080],
            ['container of another network', aside, 8080],
            ['host', service, own],
            ['API', service, Number(port)],
          ] as const) {
            reached[name] = await attemptFrom(caller, host, at);
          }
          expect(reached).toEqual({
            neighbour: 'dropped',
            'container of another platform': 'dropped',
            'container of another network': 'dropped',
            host: 'dropped',
            API: 'connected',
          });
        } finally {
          await engine().docker(['rm', '-f', bystander]);
          await second.close();
          listening.close();
        }
      }));

    test('a container has no capability, no way to gain one, and writes to bounded folders of its own', () =>
      using(async ({ factory }) => {
        const [one, other] = await Promise.all([initialized(factory), initialized(factory)]);
        const seen = await evaluated(
          one,
          `const fs = require('fs');
           const write = (path, bytes) => { try { fs.writeFileSync(path, Buffer.alloc(bytes)); return 'written'; } catch ({ code }) { return code; } };
           const status = fs.readFileSync('/proc/self/status', 'utf8');
           const value = (name) => new RegExp('^' + name + ':\\\\s*(\\\\S+)', 'm').exec(status)[1];
           fs.writeFileSync('/dev/shm/mine', 'x');
           return { root: write('/opt/x', 1), image: write('/opt/gpuwhisk/guest.mjs', 1), small: write('/tmp/a', 1024),
             large: write('/tmp/b', ${spec.memoryMiB / 2 + 1} * 1048576), more: fs.rmSync('/tmp/b'),
             effective: value('CapEff'), bounding: value('CapBnd'), gains: value('NoNewPrivs') };`,
        );
        const none = '0000000000000000';
        expect(seen).toEqual({
          ...{ root: 'EROFS', image: 'EROFS', small: 'written', large: 'ENOSPC' },
          ...{ effective: none, bounding: none, gains: '1' },
        });
        expect(await evaluated(other, `return require('fs').readdirSync('/dev/shm')`)).toEqual([]);
        expect((await inspect(one)).HostConfig).toMatchObject({ PidsLimit: 1024, IpcMode: 'private' });
      }));

    test('an image has the folders in memory that are configured for it, and no others', async () => {
      const { factory, close } = await openDockerFactory(engine(), {
        writable: { 'gpuwhisk/test-framed': ['/opt/mine'] },
      });
      try {
        const container = await initialized(factory);
        const script = `require('fs').writeFileSync('/opt/mine/x', 'x'); return require('fs').statfsSync('/opt/mine')`;
        const { bsize, blocks, files } = (await evaluated(container, script)) as Record<string, number>;
        expect((bsize ?? 0) * (blocks ?? 0)).toBe((spec.memoryMiB / 2) * MiB);
        expect(files).toBe(((spec.memoryMiB / 2) * MiB) / 4096);
        expect(container.spec.kind).toBe(kind);
      } finally {
        await close();
      }
    });

    test('the network and its rules go with the platform; those of a killed one go with the next', async () => {
      const networks = (): Promise<string> => engine().docker(['network', 'ls', '--format', '{{.Name}}']);
      // Platforms beside this test have other tables.
      const dockerTables = (): string[] =>
        tables()
          .split('\n')
          .filter((line) => line.includes('gpuwhisk_docker_'));
      const before = { networks: await networks(), tables: dockerTables() };
      const left = 'gpuwhisk_docker_000000000000';
      spawnSync('nft', ['-f', '-'], { input: `table inet ${left} {}\ntable bridge ${left} {}\n` });
      await using(async () => {
        expect(await networks()).toMatch(/^gpuwhisk-[\da-f]{12}$/m);
        expect(tables()).toMatch(/table bridge gpuwhisk_docker_[\da-f]{12}/);
        expect(tables()).not.toContain(left);
      });
      expect({ networks: await networks(), tables: dockerTables() }).toEqual(before);
    });

    test("a network of the operator's is taken as it is, and the start says so", async () => {
      const { notes, close } = await openDockerFactory(engine(), { network: engine().network });
      await close();
      expect(notes).toEqual([expect.stringMatching(/^Containers are in network 'gpuwhisk' \(docker.network\)/)]);
    });
  });
}

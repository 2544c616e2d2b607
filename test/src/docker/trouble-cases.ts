import { describe, expect, test } from '@jest/globals';
import { ProvisioningError, bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { initRequest, kind, limits, spec } from '../contract/container-calls.js';
import { initialized, run } from '../contract/containers/cases.js';
import { openDockerFactory } from './docker-harness.js';
import type { DockerHarness } from './docker-harness.js';
import type { DockerEngine } from './docker-engine.js';

/** Address of a registry without a server: connections are refused at once. */
const noRegistry = '127.0.0.1:9';

/** Failures of engines and images. */
export function troubleCases(engine: () => DockerEngine): void {
  const using = async (use: (harness: DockerHarness) => Promise<void>): Promise<void> => {
    const harness = await openDockerFactory(engine());
    try {
      await use(harness);
    } finally {
      await harness.close();
    }
  };
  const failure = async (image: string): Promise<ProvisioningError> => {
    let error: unknown;
    await using(async ({ factory }) => {
      error = await factory.create(bareSpec(`blackbox:${image}`, 256)).catch((reason: unknown) => reason);
    });
    expect(error).toBeInstanceOf(ProvisioningError);
    return error as ProvisioningError;
  };
  const idsOf = async (): Promise<string[]> => (await engine().docker(['ps', '-aq', '--no-trunc'])).split('\n');

  describe('images', () => {
    const provisioning = 'Failed to provision resources to run the action.';
    test.each([
      ['gpuwhisk/test-nothing:1', /no such file/, provisioning, false],
      ['gpuwhisk/test-mute:1', /it ended at once with status 0|closed its socket/, provisioning, false],
      [
        `${noRegistry}/none:1`,
        /cannot be fetched: .*refused/,
        `Failed to pull container image '${noRegistry}/none:1'.`,
        true,
      ],
    ])('%s is no runtime', async (image, message, told, byAction) => {
      expect(await failure(image)).toMatchObject({ message: expect.stringMatching(message), told, byAction });
    });

    test('that end at once do so before they are initialized, whether that is seen at once or later', () =>
      using(async ({ factory }) => {
        const made = await factory
          .create(bareSpec('blackbox:gpuwhisk/test-ends:1', 256))
          .catch((error: unknown) => error);
        if (made instanceof ProvisioningError) {
          expect(made).toMatchObject({
            told: 'The action did not initialize and exited unexpectedly.',
            byAction: true,
          });
        } else {
          const outcome = await (made as Container).init(initRequest(), limits).outcome;
          expect(outcome).toEqual({ type: 'lost', oomKilled: false });
        }
      }));

    test('of a fixed tag do if the registry cannot be asked, others do not', async () => {
      for (const tag of ['1', 'latest'])
        await engine().docker(['tag', 'gpuwhisk/test-http:1', `${noRegistry}/had:${tag}`]);
      await using(async ({ factory }) => {
        const container = await factory.create(bareSpec(`blackbox:${noRegistry}/had:1`, 256));
        await container.destroy();
      });
      expect((await failure(`${noRegistry}/had`)).told).toBe(`Failed to pull container image '${noRegistry}/had'.`);
    });
  });

  test('containers have the flags that OpenWhisk gives them, without any capability', () =>
    using(async ({ factory }) => {
      const container = await factory.prewarm(spec);
      const rows = (await engine().docker(['ps', '-a', '--format', '{{.ID}} {{.Names}}'])).split('\n');
      const row = rows.find((each) => each.includes(`${container.id}_prewarm_test1`)) ?? '';
      const [seen] = JSON.parse(await engine().docker(['inspect', row.split(' ')[0] ?? ''])) as [
        { HostConfig: object; State: { Pid: number } },
      ];
      expect(container.id).toMatch(/^wsk0_\d+$/);
      expect(seen.State.Pid).toBe(container.hostPid);
      expect(seen.HostConfig).toMatchObject({
        Memory: 256 * 1024 * 1024,
        MemorySwap: 256 * 1024 * 1024,
        CpuShares: 64,
        PidsLimit: 1024,
        CapDrop: ['ALL'],
        ReadonlyRootfs: true,
        IpcMode: 'private',
        Ulimits: [{ Name: 'nofile', Soft: 1024, Hard: 1024 }],
        LogConfig: { Type: 'json-file' },
        NetworkMode: expect.stringMatching(/^gpuwhisk-[\da-f]{12}$/),
        SecurityOpt: ['no-new-privileges'],
        Privileged: false,
      });
    }));

  test('what an earlier life left is removed at the start, and nothing of others', () =>
    using(async ({ factory: other }) => {
      const kept = await initialized(other);
      const first = await openDockerFactory(engine());
      const left = await initialized(first.factory);
      const call = run(left, { do: 'hang' });
      const second = await openDockerFactory(engine(), { dataDir: first.dataDir });
      expect(await call.outcome).toMatchObject({ type: 'lost' });
      await left.exited;
      expect(await run(kept, { a: 1 }).outcome).toMatchObject({ result: { a: 1 } });
      await second.close();
      await first.close();
    }));

  test('a factory without an engine does not start', async () => {
    const opened = openDockerFactory(engine(), { socketPath: '/no/such/socket' });
    await expect(opened).rejects.toThrow('The Docker engine at /no/such/socket cannot be reached');
  });

  test('all containers are removed when their factories have closed', async () => {
    await using(async ({ factory }) => void (await factory.create(spec)));
    // A container that the engine created while it hung is removed some seconds later.
    const left = async (): Promise<string[]> => (await idsOf()).filter((id) => id !== '');
    const deadline = performance.now() + 20_000;
    while ((await left()).length > 0 && performance.now() < deadline)
      await new Promise((done) => setTimeout(done, 100));
    expect(await left()).toEqual([]);
  });

  test('packages cannot be wanted', () =>
    using(async ({ factory }) => {
      const created = factory.create({ ...bareSpec(kind, 256), requirements: ['numpy'] });
      await expect(created).rejects.toMatchObject({ byAction: true, told: expect.stringContaining('not installed') });
    }));
}

// Provenance of processes: data that a hostile function leaves in its process is never seen by another owner's code.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '@gpuwhisk/common/json';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { annotation } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { isolationLack } from '../support/machine.js';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { spyFunction, spyWord } from './spy-functions.js';
import { manifestWithStemCells } from '../support/stem-cells.js';

/** Key of `whisk.system`, a namespace that shares a package. */
const vendorKey =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';
const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = newDataDir();
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
const families = catalog.manifest.runtimes.java === undefined ? (['nodejs'] as const) : (['nodejs', 'java'] as const);
type Family = (typeof families)[number];
const idleMs = 2500;
/** Time after its last run when a container is unloaded and waits for another action, ms. */
const unloadedMs = idleMs + 1000 + 300;
const ended = 'an action was not unloaded';
/** Java's runtime is compiled first. */
const readyMs = 180_000;
const suite = isolationLack === undefined ? describe : describe.skip;

suite(`a process that ran a function of one owner${isolationLack ? ` (skipped: ${isolationLack})` : ''}`, () => {
  let platform: RunningPlatform;

  beforeAll(async () => {
    const manifest = manifestWithStemCells(join(dataDir, '..'), families);
    const flags = ['--runtimes', manifest, '--set', `pool.idleContainerMs=${idleMs}`];
    platform = await startPlatform({ dataDir, flags });
    const vendor = platform.api.as(vendorKey);
    await vendor.request('PUT', '_/packages/tools', { publish: true, parameters: [{ key: 'token', value: 'secret' }] });
    for (const family of families) {
      const exec = await execOf(family);
      for (const each of ['first', 'second']) {
        const { status } = await vendor.request('PUT', `_/actions/tools/${each}-${family}`, { exec });
        expect(status).toBe(200);
      }
    }
    const binding = { namespace: 'whisk.system', name: 'tools' };
    expect((await platform.api.request('PUT', '_/packages/bound', { binding })).status).toBe(200);
  }, readyMs);
  afterAll(async () => {
    expect(await platform.end('SIGTERM')).toBe(0);
    removeDataDir(dataDir);
  });

  const launchOf = (family: Family): Promise<RuntimeLaunch> =>
    catalog.launch(catalog.manifest.runtimes[family]?.[0]?.kind ?? '', []);

  const execs = new Map<Family, Promise<JsonObject>>();
  /** Compiled once: a container waits for another action for a limited time only. */
  function execOf(family: Family): Promise<JsonObject> {
    const made = execs.get(family) ?? launchOf(family).then((launch) => makeExec(family, launch));
    execs.set(family, made);
    return made;
  }
  function makeExec(family: Family, launch: RuntimeLaunch): JsonObject {
    const { code, main } = spyFunction(family, launch);
    const text = typeof code === 'string' ? code : code.toString('base64');
    return { kind: `${family}:default`, code: text, ...(main !== undefined && { main }) };
  }

  let actions = 0;
  /** Creates a new action of the guest. */
  async function ownAction(family: Family): Promise<string> {
    const name = `own-${family}-${++actions}`;
    expect((await platform.api.request('PUT', `_/actions/${name}`, { exec: await execOf(family) })).status).toBe(200);
    return name;
  }

  /** Runs new actions of the guest until one is injected into a ready process that served no other action. */
  async function inFreshProcess(family: Family, payload: { how?: string }): Promise<ApiActivation> {
    let record: ApiActivation | undefined;
    const injected = async (): Promise<boolean> => {
      ({ record } = await platform.api.run(await ownAction(family), payload));
      return annotation(record, 'start') === 'injected';
    };
    await until('one runs in a process that was ready', injected, readyMs);
    return record as ApiActivation;
  }

  const pidOf = ({ response }: ApiActivation): unknown => {
    expect(response).toMatchObject({ success: true });
    return response.result.pid;
  };
  const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
  async function bound(name: string): Promise<ApiActivation> {
    const { activationId } = await platform.api.invoke(`bound/${name}`);
    return platform.api.record(activationId);
  }

  test.each(families)(
    "serves the same owner's code again, and no other's (%s)",
    async (family) => {
      // Processes of pairs share a PID namespace: their ids are unique.
      const used = new Set([pidOf(await inFreshProcess(family, {}))]);
      await until(
        'a process serves another action of the owner',
        async () => {
          await pause(unloadedMs);
          const { record } = await platform.api.run(await ownAction(family));
          if (annotation(record, 'start') !== 'injected' || used.has(pidOf(record))) return used.has(pidOf(record));
          used.add(pidOf(record));
          return false;
        },
        30_000,
      );
      await pause(unloadedMs);
      expect(used).not.toContain(pidOf(await bound(`first-${family}`)));
    },
    readyMs,
  );

  test.each(families.flatMap((family) => [[family, 'timer'] as const, [family, 'forge'] as const]))(
    'is ended where its function left something (%s, %s)',
    async (family, how) => {
      const hostile = await inFreshProcess(family, { how });
      const before = platform.output().length;
      await until('it was to be unloaded', () => platform.output().slice(before).includes(ended));
      const after = [
        await bound(`first-${family}`),
        await bound(`second-${family}`),
        (await platform.api.run(await ownAction(family))).record,
      ];
      for (const record of after) {
        expect(pidOf(record)).not.toBe(pidOf(hostile));
        expect(record.logs.join()).not.toContain(spyWord);
      }
    },
    readyMs,
  );
});

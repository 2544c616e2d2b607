// Functions whose further instances are copies of their loaded state.
import AdmZip from 'adm-zip';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasPythonPairs } from '@gpuwhisk/invoker/runtimes/python-runtime';
import { annotation } from '../support/api-client.js';
import type { ApiActivation, ApiClient } from '../support/api-client.js';
import { hasLauncher, hasPython } from '../support/machine.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { otherAuth, prewarmersOf } from '../support/stem-cells.js';

const loadMs = 300;
const readyMs = 20_000;
const kind = 'python:default';
const annotations = { warm: { snapshot: true } };
/** `ahead`: code that runs while it is loaded; `main`: a further entry of the result. */
const source = (ahead = '', entry = '"more": 0'): string => `
import os, random, sys, time, uuid
time.sleep(${loadMs / 1000})
seen = {"runs": 0, "restored": [], "id": os.environ.get("__OW_ACTIVATION_ID"), "key": os.environ.get("__OW_API_KEY")}
${ahead}
def after_restore():
    seen["restored"].append(os.environ["__OW_ACTIVATION_ID"])
def main(args):
    seen["runs"] += 1
    time.sleep(args.get("holdS", 0))
    drawn = [random.random(), os.urandom(8).hex(), str(uuid.uuid4())]
    return {**seen, "drawn": drawn, "own": os.environ["__OW_ACTIVATION_ID"], ${entry}}
`;

(hasPython && hasPythonPairs() && hasLauncher && process.getuid?.() === 0 ? describe : describe.skip)(
  'snapshots of functions',
  () => {
    let platform: RunningPlatform;

    beforeAll(async () => {
      platform = await startPlatform();
    }, 60_000);
    afterAll(() => platform.stop());

    const shown = async (name: string) =>
      (await prewarmersOf(platform)).filter(
        ({ action, namespace }) => namespace === 'guest' && action?.endsWith(`/${name}`) === true,
      );
    const stands = (name: string): Promise<unknown> =>
      until(
        `${name} has a snapshot`,
        async () => (await shown(name)).some(({ unfit }) => unfit === undefined),
        readyMs,
      );
    const unfit = async (name: string): Promise<string | undefined> => {
      await until(`${name} is unfit`, async () => (await shown(name)).some((one) => one.unfit !== undefined), readyMs);
      return (await shown(name))[0]?.unfit;
    };
    const startMsOf = (record: ApiActivation): number =>
      Number(annotation(record, 'waitTime')) + Number(annotation(record, 'initTime'));

    /** The record of a run that finds the instances busy for half a second. */
    async function runBeside(name: string, api: ApiClient = platform.api, payload: JsonObject = {}) {
      const held = api.run(name, { holdS: 0.5 });
      await new Promise((done) => setTimeout(done, 100));
      const { record } = await api.run(name, payload);
      await held;
      return record;
    }

    test('further instances are copies of the state before the first run, with their own random numbers', async () => {
      const { api } = platform;
      // Calls that the sandbox leaves to proxies (userfaultfd is 323).
      const traces =
        'import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n' +
        'seen["refused"] = [libc.ptrace(0, 0, 0, 0), ctypes.get_errno(), libc.syscall(323, 0), ctypes.get_errno()]';
      await api.putAction('copied', source(traces), { kind, annotations });
      const { record: first } = await api.run('copied');
      expect(startMsOf(first)).toBeGreaterThanOrEqual(loadMs);
      expect(first.response.result).toMatchObject({ runs: 1, restored: [], id: first.activationId });
      await stands('copied');
      const records = await Promise.all([0, 1, 2].map(() => api.run('copied', { holdS: 0.5 })));
      const copies = records.map(({ record }) => record).filter((one) => annotation(one, 'initTime') !== undefined);
      expect(copies).toHaveLength(2);
      for (const copy of copies) {
        expect(annotation(copy, 'coldStart')).toMatchObject({ savedBy: 'restored' });
        expect((annotation(copy, 'coldStart') as { savedMs: number }).savedMs).toBeGreaterThanOrEqual(loadMs);
        expect(startMsOf(copy)).toBeLessThan(loadMs);
        const { activationId } = copy;
        // Nothing of the first activation, or of its caller, is in the state.
        expect(copy.response.result).toMatchObject({ runs: 1, restored: [activationId], id: null, key: null });
        expect(copy.response.result.refused).toEqual([-1, 1, -1, 1]); // EPERM
        expect(copy.response.result.own).toBe(activationId);
      }
      const all = records.map(({ record }) => record.response.result.drawn as string[]);
      for (const at of [0, 1, 2]) expect(new Set(all.map((drawn) => drawn[at])).size).toBe(3);
      const metrics = await (await fetch(`${platform.url}/metrics`)).text();
      expect(metrics).toMatch(/gpuwhisk_snapshot_starts_total\{outcome="restored"\} 2/);
    });

    test('an archive finds its files in each copy', async () => {
      const { api } = platform;
      const code =
        'import os\nNAME = "data.txt"\ndef main(args):\n  import time; time.sleep(args.get("holdS", 0))\n' +
        '  return {"text": open(NAME).read(), "helped": __import__("helper").value}\n';
      const zip = new AdmZip();
      const files = { '__main__.py': code, 'data.txt': 'here', 'helper.py': 'value = 7\n' };
      for (const [name, text] of Object.entries(files)) zip.addFile(name, Buffer.from(text));
      await api.putAction('archived', zip.toBuffer(), { kind, annotations });
      await api.run('archived');
      await stands('archived');
      const record = await runBeside('archived');
      expect(annotation(record, 'coldStart')).toMatchObject({ savedBy: 'restored' });
      expect(record.response.result).toEqual({ text: 'here', helped: 7 });
    });

    test('neither a new version nor another namespace gets a copy, and a new version has a snapshot of its own', async () => {
      const { api } = platform;
      const guest = (await api.request<string[]>('GET', '')).body[0];
      await api.request('PUT', '_/packages/shared?overwrite=true', { publish: true });
      const put = (ahead: string): Promise<JsonObject> =>
        api.putAction('shared/versioned', source(ahead, '"version": version'), { kind, annotations });
      await put('version = 1');
      await api.run('shared/versioned');
      await stands('versioned');
      const other = api.as(otherAuth);
      const foreign = await other.request<ApiActivation>('POST', `${guest}/actions/shared/versioned?blocking=true`, {});
      expect(startMsOf(foreign.body)).toBeGreaterThanOrEqual(loadMs);
      expect(foreign.body.response.result).toMatchObject({ version: 1, restored: [] });

      await put('version = 2');
      const { record } = await api.run('shared/versioned');
      expect(startMsOf(record)).toBeGreaterThanOrEqual(loadMs);
      expect(record.response.result).toMatchObject({ version: 2, restored: [] });
      await stands('versioned');
      const copy = await runBeside('shared/versioned');
      expect(annotation(copy, 'coldStart')).toMatchObject({ savedBy: 'restored' });
      expect(copy.response.result).toMatchObject({ version: 2, runs: 1, restored: [copy.activationId] });
    });

    test('a function that needs what a copy would lack is loaded for each instance, and the operator sees why', async () => {
      const { api } = platform;
      const cases: [name: string, ahead: string, reason: RegExp][] = [
        [
          'thread',
          'import threading\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()',
          /^It has 2 thr/,
        ],
        ['socket', 'import socket\nkept = socket.socket()', /^It has opened socket:/],
        ['opened', 'kept = open("/etc/passwd")', /^It has opened \/etc\/passwd/],
        ['written', 'open("/tmp/mark", "w").close()', /^It has written the file \/tmp\/mark/],
        ['process', 'import subprocess\nkept = subprocess.Popen(["sleep", "600"])', /^It has started a process/],
        ['caller', 'key = os.environ["__OW_API_KEY"]', /loaded ahead: KeyError: '__OW_API_KEY'/],
      ];
      const asked = { ...annotations, 'provide-api-key': true };
      for (const [name, ahead] of cases) await api.putAction(name, source(ahead), { kind, annotations: asked });
      await Promise.all(cases.map(([name]) => api.run(name)));
      for (const [name, , reason] of cases) expect(await unfit(name)).toMatch(reason);
      for (const record of await Promise.all(cases.map(([name]) => runBeside(name)))) {
        expect(startMsOf(record)).toBeGreaterThanOrEqual(loadMs);
        expect(record.response).toMatchObject({ success: true, result: { runs: 1, restored: [] } });
      }
    });

    test('a failure or an endless run of after_restore is one of the start', async () => {
      const { api } = platform;
      const replaced = (body: string): string => source().replace(/seen\["restored"\]\.append.*/, body);
      await api.putAction('raising', replaced('raise ValueError("no key")'), { kind });
      await api.putAction('endless', replaced('time.sleep(600)'), { kind, limits: { timeout: 1500 } });
      // The function itself is the wish for snapshots.
      await Promise.all(['raising', 'endless'].map((name) => api.run(name)));
      await Promise.all(['raising', 'endless'].map(stands));
      const [raising, endless] = await Promise.all(['raising', 'endless'].map((name) => runBeside(name)));
      expect(raising!.response.result).toEqual({ error: "The action's function after_restore failed: no key" });
      expect(raising!.logs.join('\n')).toContain('ValueError: no key');
      expect(endless!.response.result.error).toMatch(
        /exceeded its time limits of 1500 milliseconds during initialization/,
      );
      expect((await api.run('raising')).record.response.result).toMatchObject({ runs: 3 });
    });
  },
);

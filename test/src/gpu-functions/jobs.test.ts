// Training jobs of a whole platform with two simulated GPUs, by the command line.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { runWsk, withFolder } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import { annotation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import { removeDataDir, newDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { canMount, mountSmall, unmountSmall } from '../support/small-disk.js';

const caseMs = 120_000;
const soonMs = 45_000;
const flags = ['--gpus', 'sim:a100-40x2', '--stem-cells', 'false'];

/**
 * Members meet at MASTER_ADDR, and make steps on their own GPU. Member 0 writes a checkpoint after each. Member `dies` kills
 * itself once at step 4; member `hangs` never comes to the rendezvous.
 */
const training = `import os, signal, socket, time
import gpuwhisk_sim, gpuwhisk_training

def meet(rank, size):
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        server = socket.create_server(address)
        return [server.accept()[0] for _ in range(size - 1)]
    while True:
        try:
            return [socket.create_connection(address)]
        except ConnectionRefusedError:
            time.sleep(0.02)

def wait_for_others(rank, kept):
    for member in kept:
        if rank > 0:
            member.sendall(b".")
        elif member.recv(1) == b"":  # It is gone: a collective operation would not end, either.
            for _ in range(1000):
                if gpuwhisk_training.stopping():
                    return
                time.sleep(0.01)

def main(args):
    rank, size = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
    if args.get("hangs") == rank:
        time.sleep(600)
    kept = meet(rank, size)
    gpuwhisk_training.joined()
    gpuwhisk_sim.use_device(rank)
    model = gpuwhisk_sim.Model("resnet50")
    folder = os.environ.get("GPUWHISK_CHECKPOINT_DIR", ".")
    path = os.path.join(folder, "step")
    first = int(open(path).read()) if os.path.exists(path) else 0
    if os.path.exists(os.path.join(folder, "died")):
        args["dies"] = None
    for step in range(first + 1, args["steps"] + 1):
        model.train_step(1)
        time.sleep(args.get("pause", 0.05))
        wait_for_others(rank, kept)
        if rank == 0:
            with open(path + ".new", "w") as file:
                file.write(str(step))
            os.rename(path + ".new", path)
            if "fills" in args:
                with open(os.path.join(folder, "large"), "wb") as file:
                    file.write(os.urandom(args["fills"] << 20))
        gpuwhisk_training.step()
        print("step", step, flush=True)
        if args.get("dies") == rank and step == 4:
            open(os.path.join(folder, "died"), "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if gpuwhisk_training.stopping():
            print("stops after", step, flush=True)
            break
    return {"first": first, "last": step, "size": size, "memory": os.environ["GPUWHISK_MEMORY_MIB"]}
`;

interface ShownJob extends JsonObject {
  id: string;
  state: string;
  attempts: { number: number; activationId: string; reason?: string; steps?: number }[] & JsonObject[];
}

(hasStandIn() && hasPython ? describe : describe.skip)('training jobs on simulated GPUs', () => {
  let platform: RunningPlatform;
  const dataDir = newDataDir();
  beforeAll(async () => {
    platform = await startPlatform({ flags, dataDir });
    const gpu = { memoryMiB: 3000, mpsPercent: 50 };
    await platform.api.putAction('train', training, { kind: 'python:default', annotations: { gpu } });
  }, caseMs);
  afterAll(async () => {
    await platform.end('SIGTERM');
    removeDataDir(dataDir);
  }, caseMs);

  const wsk = (...words: string[]): Promise<WskResult> =>
    withFolder((directory) => runWsk(['--apihost', platform.url, '--auth', platform.auth, ...words], { directory }));
  const start = async (parameters: JsonObject, ...more: string[]): Promise<string> => {
    const given = Object.entries(parameters).flatMap(([name, value]) => ['-p', name, JSON.stringify(value)]);
    const { stdout, stderr, code } = await wsk('gpu', 'job', 'run', 'train', ...given, ...more);
    expect([code, stderr]).toEqual([0, '']);
    return /^ok: started job ([0-9a-f]{16})\n$/.exec(stdout)![1]!;
  };
  const shown = async (id: string): Promise<ShownJob> =>
    (await platform.api.request<ShownJob>('GET', `../gpu/jobs/${id}`)).body;
  const untilJob = async (id: string, what: string, holds: (job: ShownJob) => boolean): Promise<ShownJob> => {
    await until(`job ${id} ${what}`, async () => holds(await shown(id)), soonMs);
    return shown(id);
  };
  const untilOver = (id: string): Promise<ShownJob> =>
    untilJob(id, 'has ended', ({ state }) => ['succeeded', 'failed', 'stopped'].includes(state));
  const recordOf = (job: ShownJob) => platform.api.record(job.attempts.at(-1)!.activationId);
  const checkpoints = (): string[] => {
    const folder = join(dataDir, 'checkpoints');
    return existsSync(folder) ? readdirSync(folder) : [];
  };

  test(
    'two members on two GPUs go on from their checkpoint after one was killed',
    async () => {
      const id = await start({ steps: 20, dies: 1 }, '--members', '2', '--checkpoint');
      const job = await untilOver(id);
      expect(job).toMatchObject({ state: 'succeeded', restarts: 1, members: 2, gpus: 2 });
      expect(job.attempts.at(-2)).toMatchObject({ reason: 'Member 1 was ended by SIGKILL.' });
      const record = await recordOf(job);
      const { first } = record.response.result as { first: number };
      expect(first).toBeGreaterThanOrEqual(2);
      expect(first).toBeLessThan(20);
      expect(record.response.result).toEqual({ first, last: 20, size: 2, memory: '3000,3000' });
      expect(annotation(record, 'training')).toMatchObject({ job: id, members: 2, joined: 2, steps: 20 - first });
      const logs = await wsk('gpu', 'job', 'logs', id, '--member', '1');
      expect(logs.stdout).toMatch(/^\[1\] step 1\n[^]*\[1\] step 20\n$/);
      expect(logs.stdout).not.toContain('[0]');
      await until('its checkpoints are removed', () => !checkpoints().includes(id), soonMs);
    },
    caseMs,
  );

  test(
    'a job that is stopped has its grace for a last checkpoint; top and list show its progress',
    async () => {
      const id = await start({ steps: 100_000 }, '--checkpoint');
      const line = new RegExp(`/guest/train .* job ${id}, run 1, \\d+ steps, [\\d.]+/s`);
      await until('top shows it', async () => line.test((await wsk('gpu', 'top', '--once')).stdout), soonMs);
      expect((await wsk('gpu', 'job', 'list')).stdout).toMatch(
        new RegExp(`^${id} +/guest/train +running +1 +1 +\\d+ +[\\d.]+ +0/3 +0 `, 'm'),
      );
      expect((await wsk('gpu', 'job', 'stop', id, '--grace', '20s')).stdout).toBe(`ok: job ${id} is being stopped\n`);
      // Follows to the end of the job.
      const { stdout } = await wsk('gpu', 'job', 'logs', id, '--follow');
      expect(stdout).toMatch(/\[0\] step \d+\n\[0\] stops after \d+\n$/);
      const job = await shown(id);
      expect(job).toMatchObject({ state: 'stopped', reason: 'It was stopped.', restarts: 0 });
      expect(job.attempts).toMatchObject([{ reason: 'The job was asked to stop.' }]);
      // It ended by itself, as it was asked to: with its result, and as no error.
      const record = await recordOf(job);
      expect(record.response).toMatchObject({ status: 'success', result: { first: 0, size: 1 } });
      expect(annotation(record, 'training')).toMatchObject({ job: id, end: 'stopped' });
      const listed = (await wsk('activation', 'list', 'train')).stdout.split('\n');
      expect(listed.find((row) => row.includes(record.activationId))).toMatch(/ stopped +guest\/train:/);
      const summary = await wsk('activation', 'get', record.activationId, '--summary');
      expect(summary.stdout).toMatch(/^activation result for '\/guest\/train' \(stopped at /);
      expect((await wsk('gpu', 'job', 'stop', id)).stdout).toBe(`ok: job ${id} is stopped\n`);
    },
    caseMs,
  );

  test(
    'a member that hangs at the rendezvous fails the job once the restarts are used up',
    async () => {
      const size = ['--members', '2', '--rendezvous-timeout', '1s', '--restarts', '1'];
      const job = await untilOver(await start({ steps: 2, hangs: 1 }, ...size));
      expect(job).toMatchObject({ state: 'failed', restarts: 1 });
      expect(job.reason).toMatch(/^Members 0, 1 were not at the rendezvous within 1 s .* restarted 1 times before\.$/);
      expect(job.attempts).toHaveLength(2);
    },
    caseMs,
  );

  test(
    'checkpoints beyond their bound end the job',
    async () => {
      const job = await untilOver(await start({ steps: 100_000, fills: 3 }, '--checkpoint-size', '2'));
      expect(job).toMatchObject({ state: 'failed', restarts: 0 });
      expect(job.reason).toMatch(/its checkpoints take \d+ MiB, more than its bound of 2 MiB\.$/);
    },
    caseMs,
  );

  (canMount ? test : test.skip)(
    'a job whose checkpoints have no space on the disk is refused, and its record says so',
    async () => {
      const folder = join(dataDir, 'checkpoints');
      expect(mountSmall(folder, 32)).toBe(true);
      try {
        const job = await untilOver(await start({ steps: 1 }, '--checkpoint-size', '64', '--restarts', '0'));
        const reason = 'cannot be kept: the disk would have less than 1024 MiB left beside 92 MiB for them.';
        expect(job).toMatchObject({ state: 'failed', restarts: 0, reason: expect.stringContaining(reason) });
        const record = await recordOf(job);
        expect(record.response).toMatchObject({ success: false, result: { error: expect.stringContaining(reason) } });
      } finally {
        unmountSmall(folder);
      }
    },
    caseMs,
  );

  test(
    'a job goes on after it gave way, and after a restart of the platform',
    async () => {
      const id = await start({ steps: 40, pause: 0.15 }, '--checkpoint', '--restarts', '0');
      const untilSteps = (attempts: number): Promise<ShownJob> =>
        untilJob(
          id,
          `makes steps in run ${attempts}`,
          (job) => job.attempts.length === attempts && Number(job.steps) >= 2,
        );
      await untilSteps(1);
      const { body: devices } = await platform.api.request<{ functions: JsonObject[] }[]>('GET', '../gpu/devices');
      const instance = devices.flatMap(({ functions }) => functions).find(({ action }) => action === '/guest/train');
      expect(instance).toMatchObject({ running: 1, training: { job: id, attempt: 1 } });
      await wsk('gpu', 'retire', String(instance!.container), '--grace', '20000');
      await untilSteps(2);
      await platform.end('SIGKILL');
      platform = await startPlatform({ flags, dataDir });
      const job = await untilOver(id);
      expect(job).toMatchObject({ state: 'succeeded', restarts: 0, interruptions: 2 });
      const reasons = job.attempts.map(({ reason }) => reason);
      expect(reasons).toEqual(['The job was asked to stop.', 'The invoker stopped while the action ran.', undefined]);
      const { first } = (await recordOf(job)).response.result as { first: number };
      expect(first).toBeGreaterThanOrEqual(4);
    },
    caseMs,
  );

  test(
    'what is no job is refused',
    async () => {
      await platform.api.putAction('cpu', 'def main(args):\n  return {}', { kind: 'python:default' });
      const ask = async (body: JsonObject) => {
        const { status, body: answer } = await platform.api.request<{ error: string }>('POST', '../gpu/jobs', body);
        return [status, answer.error];
      };
      const refused = (text: string): unknown[] => [400, expect.stringContaining(text)];
      expect(await ask({ action: 'cpu' })).toEqual(refused("has no annotation 'gpu'"));
      expect(await ask({ action: 'train', members: 2, gpus: 4 })).toEqual(refused("'members' must be 1 or"));
      expect(await ask({ action: 'train', restarts: -1 })).toEqual(refused("'restarts' must be a whole number"));
      expect(await ask({ action: 'train', sloMs: 1 })).toEqual(refused("'sloMs' is no field of a training job"));
      expect(await ask({ action: 'train', gpus: 3 })).toEqual([503, expect.stringContaining("'gpus' is 3")]);
      expect((await platform.api.request('GET', '../gpu/jobs/0123456789abcdef')).status).toBe(404);
    },
    caseMs,
  );
});

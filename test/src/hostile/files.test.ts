// Attacks on files of the host by a tenant's processes, while the platform works on the tenant's folders as root.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasPython } from '../support/machine.js';
import { descendants } from '../support/process-traces.js';
import { until } from '../support/running-platform.js';
import { caseMs, openTenancy, runJob } from './tenants.js';
import type { Tenancy } from './tenants.js';

const isRoot = process.getuid?.() === 0;
const files = Array.from({ length: 40 }, (_, at) => `file${at}`);
/** Processes that exchange folders, and others that hold up the end of the sandbox. */
const [exchanging, busy] = [100, 500];

/**
 * Leaves processes behind that exchange the folder `a` with the link `b`, under which the host's folder has files of the same
 * names, so that a removal by paths removes the host's.
 */
const exchanges = (folder: string): string => `import ctypes, os, platform

def main(args):
    libc = ctypes.CDLL(None)
    call = {"x86_64": 316, "aarch64": 276}[platform.machine()]
    base = os.environ["GPUWHISK_CHECKPOINT_DIR"]
    for inner in range(50):
        folder = os.path.join(base, str(inner))
        os.makedirs(folder + "/a")
        os.symlink(${JSON.stringify(folder)}, folder + "/b")
        for name in ${JSON.stringify(files)}:
            open(os.path.join(folder, "a", name), "w").close()
    names = [(f"{base}/{inner}/a".encode(), f"{base}/{inner}/b".encode()) for inner in range(50)]
    started = 0
    waits, go = os.pipe()
    for at in range(${exchanging + busy}):
        try:
            child = os.fork()
        except OSError:
            break
        started += 1
        if child == 0:
            os.setsid()
            os.close(go)
            os.read(waits, 1)  # Until the job ends.
            while True:
                for one, other in names if at < ${exchanging} else []:
                    libc.syscall(call, -100, one, -100, other, 2)
    os.close(go)
    return {"started": started}
`;

const suite = hasStandIn() && hasPython && isRoot ? describe : describe.skip;

suite('files of the host', () => {
  let tenancy: Tenancy;
  beforeAll(async () => {
    tenancy = await openTenancy();
  }, caseMs);
  afterAll(() => tenancy.platform.stop(), caseMs);

  test(
    'stay, though processes of a job exchange its folders with links to them; none is there when it has ended',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-host-'));
      for (const name of files) writeFileSync(join(folder, name), 'of the host');
      try {
        const job = await runJob(tenancy.attacker, exchanges(folder));
        expect(job).toMatchObject({ state: 'succeeded' });
        const left = descendants(tenancy.platform.pid).filter(({ command }) => command.includes('python'));
        expect(left).toEqual([]);
        const checkpoints = join(tenancy.platform.dataDir, 'checkpoints', job.id);
        await until('its checkpoints are removed', () => !existsSync(checkpoints), caseMs);
        expect(readdirSync(folder).sort()).toEqual([...files].sort());
        expect(tenancy.platform.output()).not.toMatch(/could not be (removed|looked at)/);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    caseMs,
  );

  test.each([
    ['bytes', 'os.posix_fallocate(file, 0, 2 << 30)'],
    ['bytes one after the other', 'while True: os.write(file, bytes(1 << 20))'],
    ['files', 'for at in range(1 << 20): os.mkdir(os.path.join(folder, str(at)))'],
  ])(
    'have the space that a job asks for with its checkpoints: %s',
    async (_, line) => {
      const code = `import os, time
def main(args):
    folder = os.environ["GPUWHISK_CHECKPOINT_DIR"]
    file = os.open(os.path.join(folder, "large"), os.O_RDWR | os.O_CREAT)
    ${line}
`;
      const free = (): number =>
        statfsSync(tenancy.platform.dataDir).bavail * statfsSync(tenancy.platform.dataDir).bsize;
      const before = free();
      const checkpoints = join(tenancy.platform.dataDir, 'checkpoints');
      let [least, allocated] = [before, 0];
      const timer = setInterval(() => {
        least = Math.min(least, free());
        for (const job of existsSync(checkpoints) ? readdirSync(checkpoints) : []) {
          const image = statSync(join(checkpoints, job, 'image'), { throwIfNoEntry: false });
          allocated = Math.max(allocated, (image?.blocks ?? 0) * 512);
        }
      }, 20);
      try {
        const job = await runJob(tenancy.attacker, code);
        expect(job).toMatchObject({ state: 'failed' });
        expect(job.reason).toMatch(/No space left on device|its checkpoints (take|are more)/);
      } finally {
        clearInterval(timer);
      }
      // 64 MiB of checkpoints, in an image of 92 MiB, and what else is written and removed on the disk meanwhile.
      expect((before - least) / 2 ** 20).toBeLessThan(1000);
      expect(allocated / 2 ** 20).toBeGreaterThan(80);
      await until('the image is removed', () => readdirSync(checkpoints).length === 0, caseMs);
    },
    caseMs,
  );
});

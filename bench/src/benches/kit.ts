import { execFile, execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import type { KitReport } from '../gpu-day/report.js';
import { repositoryDir } from '../machine.js';

const packTimeoutMs = 300_000;
const runTimeoutMs = 400_000;

/** The GPU kit, packed and run on the stand-in as on another machine. */
export const kit: Bench = {
  summary: 'the GPU kit on the stand-in: its size, and how long it takes',
  parts: [],
  simulated: true,
  async run({ temporaryDir, say }: BenchContext): Promise<Measurement[]> {
    const archive = join(temporaryDir, 'kit.tar.xz');
    execFileSync(process.execPath, [join(repositoryDir, 'scripts/gpu-day.mjs'), '--pack', archive], {
      timeout: packTimeoutMs,
    });
    execFileSync('tar', ['-xJf', archive, '-C', temporaryDir], { timeout: packTimeoutMs });
    const archiveMiB = Number(execFileSync('stat', ['-c', '%s', archive], { encoding: 'utf8' })) / 2 ** 20;
    const out = join(temporaryDir, 'results');
    const program = join(temporaryDir, 'gpu-day', 'gpu-day');
    const code = await new Promise<number>((resolve) => {
      execFile(program, ['--simulated', '--out', out], { timeout: runTimeoutMs }, (error) =>
        resolve(error === null ? 0 : Number(error.code ?? -1)),
      );
    });
    const report = JSON.parse(await readFile(join(out, 'gpu-day.json'), 'utf8')) as KitReport;
    for (const { stage, state, tookS } of report.stages) say(`  ${stage}: ${state} in ${tookS.toFixed(0)} s`);
    if (code !== 0) throw new Error(`The kit ended with ${code}: ${await readFile(join(out, 'page.txt'), 'utf8')}`);
    return [
      { name: 'gpuDay.simulatedS', value: report.tookS },
      { name: 'gpuDay.archiveMiB', value: archiveMiB },
      ...report.stages.map(({ stage, tookS }) => ({ name: `gpuDay.stageS.${stage}`, value: tookS })),
    ];
  },
};

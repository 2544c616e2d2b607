import { join } from 'node:path';
import { bars } from './bars.js';
import { benches } from './benches.js';
import { runGpuBench } from './gpu/main.js';
import { writeBenchFigures } from './documents/figures.js';
import { benchDir } from './machine.js';
import { UsageError, type Options } from './options.js';
import { runProgram } from './program.js';

function check({ bench, beside, check: checks, gpuSamples }: Options): void {
  if (beside.length > 0 && bench !== 'invoke') throw new UsageError('--beside is for bench invoke.');
  if (beside.length > 0 && checks) throw new UsageError('--check has no bars for runs with --beside.');
  if (gpuSamples !== undefined) throw new UsageError('--gpu-samples is for npm run research -- predictor.');
}

const [bench, ...flags] = process.argv.slice(2);
if (bench === 'figures') await writeBenchFigures();
else if (bench === 'gpu') process.exitCode = await runGpuBench(flags);
else {
  process.exitCode = await runProgram(
    {
      ...{ name: 'bench', benches, bars, results: join(benchDir, 'results'), writeFigures: writeBenchFigures, check },
      flags: [
        "         [--beside NAME=URL [--beside-method NAME=GET] [--beside-header 'NAME=Header: value'] [--beside-body NAME=TEXT]",
        '           [--beside-server NAME=PID,...] [--beside-functions NAME=PID,...]]',
      ],
      further: [
        '  gpu        a GPU, with flags of its own (npm run bench -- gpu --help)',
        '  figures    writes the figures of bench/results into the documents; a full run of a bench also does this',
      ],
    },
    process.argv.slice(2),
  );
}

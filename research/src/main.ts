import { UsageError, type Options } from '@gpuwhisk/bench/options';
import { runProgram, usageOf } from '@gpuwhisk/bench/program';
import type { Program } from '@gpuwhisk/bench/program';
import { bars } from './bars.js';
import { writeResearchFigures } from './documents/figures.js';
import { experiments } from './experiments.js';
import { resultsDir } from './results.js';

function check({ bench, beside, gpuSamples, parts, quick }: Options): void {
  if (beside.length > 0) throw new UsageError('--beside is for npm run bench -- invoke.');
  if (quick === true && bench !== 'world' && bench !== 'verdicts')
    throw new UsageError('--quick is for world and verdicts.');
  if (gpuSamples !== undefined && (bench !== 'predictor' || parts.length > 0)) {
    throw new UsageError('--gpu-samples is for predictor, without --parts.');
  }
}

const program: Program = {
  ...{ name: 'research', benches: experiments, bars, results: resultsDir, writeFigures: writeResearchFigures, check },
  flags: ['         [--gpu-samples FILE] [--quick]'],
  further: [
    '  figures    writes the figures of research/results into the documents; a full run of an experiment also does this',
  ],
};

const args = process.argv.slice(2);
if (args.length === 0) process.stdout.write(`${usageOf(program)}\n`);
else if (args[0] === 'figures') await writeResearchFigures();
else process.exitCode = await runProgram(program, args);

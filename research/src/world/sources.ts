// Every data set that the world is read from.
import { BenchDataError } from '@gpuwhisk/bench/data/csv';
import { Folder } from './files.js';
import type { Contents, SkippedRow, UnusedFile } from './files.js';
import { readAbacus, readDilu, readIgniterSets } from './read-inference.js';
import { readKaceAlone, readKacePairs, readKaceSets } from './read-kace.js';
import { readKit } from './read-kit.js';
import { readMigperf, readMiso, readParvaGpu } from './read-slices.js';
import { readGavel, readLucid, readTally } from './read-training.js';
import type { Alone, MeasuredSet } from './sets.js';

/** One table of a data set. */
interface Table {
  source: string;
  file: string;
  /** Whether values fitted to it may be committed (its licence allows copies with a notice). */
  isLicensed: boolean;
  read(folder: Folder): Promise<Contents>;
}

const tables: readonly Table[] = [
  { source: 'gavel', file: 'interference/gavel_pairs.csv', isLicensed: true, read: readGavel },
  { source: 'miso', file: 'mig/miso_a100_training_iterations.csv', isLicensed: true, read: readMiso },
  { source: 'parvagpu', file: 'mig/parvagpu_a100_slices.csv', isLicensed: true, read: readParvaGpu },
  { source: 'migperf', file: 'mig/migperf_a100_latency.csv', isLicensed: true, read: readMigperf },
  { source: 'kace', file: 'interference/kace_v100_solo.csv', isLicensed: false, read: readKaceAlone },
  { source: 'kace', file: 'interference/kace_v100_pairs.csv', isLicensed: false, read: readKacePairs },
  {
    source: 'kace',
    file: 'interference/kace_v100_triples.csv',
    isLicensed: false,
    read: (folder) => readKaceSets(folder, 3),
  },
  {
    source: 'kace',
    file: 'interference/kace_v100_quads.csv',
    isLicensed: false,
    read: (folder) => readKaceSets(folder, 4),
  },
  { source: 'igniter', file: 'interference/igniter_v100_mps_pairs.csv', isLicensed: false, read: readIgniterSets },
  { source: 'lucid', file: 'interference/lucid_training_pairs.csv', isLicensed: false, read: readLucid },
  { source: 'tally', file: 'interference/tally_mps_pairs.csv', isLicensed: false, read: readTally },
  { source: 'abacus', file: 'interference/abacus_a100_pairs.csv', isLicensed: false, read: readAbacus },
  { source: 'dilu', file: 'surfaces/dilu_a100_inference.csv', isLicensed: false, read: readDilu },
];

/** Names of the data sets to which values that are committed may be fitted. */
export const licensedSources: readonly string[] = [
  ...new Set(tables.filter(({ isLicensed }) => isLicensed).map(({ source }) => source)),
];

/** Everything that was measured, and what could not be used. */
export interface Measured {
  sets: MeasuredSet[];
  alone: Alone[];
  skipped: SkippedRow[];
  unused: UnusedFile[];
}

/**
 * Reads the data sets of a folder in the form of BENCH_DATA. A file that is missing, cut off or of another form is named in
 * `unused`, and the others are read. `licensed`: only those to which values that are committed may be fitted. `kit`: a folder with samples
 * of the GPU kit, each of whose files adds a GPU type. Throws BenchDataError if no file can be used.
 */
export async function readMeasured(
  folder: string,
  { licensed, kit }: { licensed: boolean; kit?: string },
): Promise<Measured> {
  const measured: Measured = { sets: [], alone: [], skipped: [], unused: [] };
  const from = new Folder(folder);
  for (const { file, isLicensed, read } of tables) {
    if (licensed && !isLicensed) continue;
    try {
      const { sets, alone, skipped } = await read(from);
      measured.sets.push(...sets);
      measured.alone.push(...alone);
      measured.skipped.push(...skipped);
    } catch (error) {
      if (!(error instanceof BenchDataError)) throw error;
      measured.unused.push({ file, why: error.message });
    }
  }
  if (kit !== undefined) {
    const { sets, alone, skipped, unused } = await readKit(kit);
    measured.sets.push(...sets);
    measured.alone.push(...alone);
    measured.skipped.push(...skipped);
    measured.unused.push(...unused);
  }
  if (measured.sets.length === 0)
    throw new BenchDataError(`No measured sets in ${folder}: ${measured.unused.map(({ why }) => why).join(' ')}`);
  return measured;
}

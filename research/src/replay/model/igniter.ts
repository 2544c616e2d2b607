import { BenchDataError, readTable, igniterPairColumns } from '@gpuwhisk/bench/data/csv';

/** One side of a measured pair: a model in a batch at its partition, beside another. All data is of iGniter's V100. */
export interface PairSide {
  /** Names both models with batches, at any partitions; validation leaves out all rows of one name together. */
  pair: string;
  model: string;
  batch: number;
  share: number;
  /** Time beside the neighbour over the time alone at the same partition. */
  slowdown: number;
  /** Standard deviation of the time over its mean. */
  deviation: number;
  neighbour: { model: string; batch: number; share: number; l2Util: number; dramUtil: number };
}

/** Power and clock of a model alone, by batch and partition. */
export interface PowerPoint {
  model: string;
  batch: number;
  share: number;
  powerW: number;
}

/** Power and clock with a number of like processes. */
export interface HardwarePoint {
  processes: number;
  powerW: number;
  frequencyMhz: number;
}

/** Measurements that the model of sharing is fitted to. */
export interface IgniterData {
  pairs: readonly PairSide[];
  power: readonly PowerPoint[];
  hardware: readonly HardwarePoint[];
}

const key = (model: string, batch: number, percent: number): string => `${model} ${batch} ${percent}`;

/**
 * Reads iGniter's measurements. Pairs are those with partitions at which the neighbour's traffic was measured (20 to 80
 * %).
 */
export async function readIgniter(folder?: string): Promise<IgniterData> {
  const solo = await readTable(
    'surfaces/igniter_v100_gpulet_solo.csv',
    {
      model: 'text',
      batch: 'number',
      partition_pct: 'number',
      l2_util_pct: 'optionalNumber',
      dram_util_pct: 'optionalNumber',
    },
    folder,
  );
  const traffic = new Map(solo.map((row) => [key(row.model, row.batch, row.partition_pct), row]));
  const rows = await readTable(
    'interference/igniter_v100_mps_pairs.csv',
    {
      ...igniterPairColumns,
      lat_a_co_std_ms: 'number',
      lat_b_co_std_ms: 'number',
    },
    folder,
  );
  const pairs = rows.flatMap((row): PairSide[] => {
    const pair = [`${row.model_a} ${row.batch_a}`, `${row.model_b} ${row.batch_b}`].sort().join(' + ');
    const a = { model: row.model_a, batch: row.batch_a, percent: row.partition_a_pct };
    const b = { model: row.model_b, batch: row.batch_b, percent: row.partition_b_pct };
    return [
      side(pair, a, b, row.lat_a_co_ms, row.lat_a_solo_ms, row.lat_a_co_std_ms),
      side(pair, b, a, row.lat_b_co_ms, row.lat_b_solo_ms, row.lat_b_co_std_ms),
    ].filter((one) => one !== undefined);
  });
  if (pairs.length === 0) throw new BenchDataError('No measured pair has a neighbour whose traffic was measured.');

  function side(
    pair: string,
    one: { model: string; batch: number; percent: number },
    other: { model: string; batch: number; percent: number },
    coMs: number,
    soloMs: number,
    stdMs: number,
  ): PairSide | undefined {
    const beside = traffic.get(key(other.model, other.batch, other.percent));
    if (beside?.l2_util_pct === undefined || beside.dram_util_pct === undefined) return undefined;
    return {
      pair,
      model: one.model,
      batch: one.batch,
      share: one.percent / 100,
      slowdown: coMs / soloMs,
      deviation: stdMs / coMs,
      neighbour: {
        model: other.model,
        batch: other.batch,
        share: other.percent / 100,
        l2Util: beside.l2_util_pct / 100,
        dramUtil: beside.dram_util_pct / 100,
      },
    };
  }

  const power = await readTable(
    'surfaces/igniter_v100_power_frequency.csv',
    { model: 'text', batch: 'number', partition_pct: 'number', gpu_power_w: 'number' },
    folder,
  );
  const hardware = await readTable(
    'surfaces/igniter_v100_hardware.csv',
    { processes: 'number', gpu_power_w: 'number', gpu_frequency_mhz: 'number' },
    folder,
  );
  return {
    pairs,
    power: power.map((row) => ({
      model: row.model,
      batch: row.batch,
      share: row.partition_pct / 100,
      powerW: row.gpu_power_w,
    })),
    hardware: hardware.map((row) => ({
      processes: row.processes,
      powerW: row.gpu_power_w,
      frequencyMhz: row.gpu_frequency_mhz,
    })),
  };
}

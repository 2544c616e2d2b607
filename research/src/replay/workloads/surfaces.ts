import { readTable } from '@gpuwhisk/bench/data/csv';
import { latencyAt, latencySurface, type LatencySurface, type SurfacePoint } from '../model/latency-surface.js';

/** RaPP's V100 surfaces at the whole time quota, by model. */
export async function readRappSurfaces(
  models: ReadonlySet<string>,
  folder?: string,
): Promise<Map<string, LatencySurface>> {
  const rows = await readTable(
    'surfaces/rapp_v100_batch_sm_quota.csv',
    { model: 'text', batch: 'number', sm_pct: 'number', quota_pct: 'number', latency_ms: 'number' },
    folder,
  );
  return surfacesOf(
    rows
      .filter(({ model, quota_pct: quota }) => quota === 100 && models.has(model))
      .map((row) => ({ model: row.model, batch: row.batch, share: row.sm_pct / 100, latencyMs: row.latency_ms })),
  );
}

/** iGniter's V100 surfaces (TensorRT), by model; at 20 to 80 % if only these shares were measured for all batches. */
export async function readIgniterSurfaces(folder?: string): Promise<Map<string, LatencySurface>> {
  const rows = await readTable(
    'surfaces/igniter_v100_gpulet_solo.csv',
    { model: 'text', batch: 'number', partition_pct: 'number', latency_ms: 'number' },
    folder,
  );
  return surfacesOf(
    rows.map((row) => ({
      model: row.model,
      batch: row.batch,
      share: row.partition_pct / 100,
      latencyMs: row.latency_ms,
    })),
  );
}

function surfacesOf(points: readonly (SurfacePoint & { model: string })[]): Map<string, LatencySurface> {
  const byModel = new Map<string, SurfacePoint[]>();
  for (const { model, ...point } of points) {
    const own = byModel.get(model);
    if (own) own.push(point);
    else byModel.set(model, [point]);
  }
  return new Map([...byModel].map(([model, own]) => [model, latencySurface(own)]));
}

/**
 * Time at a share as a function of the batch, which may be larger than the measured ones. A batch c times as large at
 * share x takes as long as the largest measured batch at x / c, since it has c times the work on c times the SMs. Below
 * the least measured share, time is inversely proportional to the share. On iGniter's models this rule predicts batch
 * 32 at 80 % from batch 8 at 20 % within 6 to 14 %.
 */
export function timeOverShare(surface: LatencySurface, batch: number): (share: number) => number {
  const largest = surface.batches.at(-1) as number;
  const least = surface.shares[0] as number;
  const greatest = surface.shares.at(-1) as number;
  const factor = Math.max(1, batch / largest);
  const measured = Math.max(surface.batches[0] as number, Math.min(batch, largest));
  return (share) => {
    const at = Math.min(greatest, share / factor);
    return at >= least ? latencyAt(surface, measured, at) : (latencyAt(surface, measured, least) * least) / at;
  };
}

// Functions of the co-scaling replay: measured surfaces, and the share and batch that profiling finds on them.
import { readTable } from '../../data/csv.js';
import { latencyAt, latencySurface, type LatencySurface } from '../model/latency-surface.js';

/** A function as it was profiled: its request is the share of the most requests per share, its limit twice that. */
export interface ServedModel {
  name: string;
  surface: LatencySurface;
  sloMs: number;
  batch: number;
  /** Fractions of the SMs. */
  request: number;
  limit: number;
}

/** An SLO is so many times the time of one request alone on the whole GPU (Dilu, section 5). */
export const sloFactor = 4;
/** A batch may take so much of the SLO, as a request may just have missed the one before (Dilu, section 3.2). */
const executionPart = 0.5;
/** Limit over request of inference (Dilu, section 3.2). */
const limitFactor = 2;

/** Output tokens of a request of a language model; its measured time is that of one token. */
const outputTokens: Readonly<Record<string, number>> = { llama2_7b: 32 };

/** Output tokens of a request; 1 for a model that makes none. */
export const outputTokensOf = (name: string): number => outputTokens[name] ?? 1;

/** Dilu's measured surfaces (A100, MPS) of whole requests of the models of that name. Throws BenchDataError. */
export async function readServedModels(names: readonly string[], folder?: string): Promise<ServedModel[]> {
  const columns = { model: 'text', batch: 'number', sm_pct: 'number', latency_s: 'number' } as const;
  const rows = await readTable('surfaces/dilu_a100_inference.csv', columns, folder);
  return names.map((name) => {
    const points = rows
      .filter(({ model }) => model === name)
      .map(({ batch, sm_pct, latency_s }) => ({
        batch,
        share: sm_pct / 100,
        latencyMs: latency_s * 1000 * outputTokensOf(name),
      }));
    return servedModel(name, latencySurface(points));
  });
}

/** The function on a surface. One request on the whole GPU takes a quarter of the SLO, so that some share always does. */
export function servedModel(name: string, surface: LatencySurface): ServedModel {
  const [batch = 1] = surface.batches;
  const whole = surface.shares.at(-1) ?? 1;
  const sloMs = sloFactor * latencyAt(surface, batch, whole);
  let best = { batch, request: whole };
  const perShare = (one: typeof best): number => ratePerS(surface, one.batch, one.request) / one.request;
  for (const one of surface.batches) {
    for (const request of surface.shares) {
      if (latencyAt(surface, one, request) > executionPart * sloMs) continue;
      if (perShare({ batch: one, request }) > perShare(best)) best = { batch: one, request };
    }
  }
  return { name, surface, sloMs, ...best, limit: Math.min(1, limitFactor * best.request) };
}

/** Requests per second in full batches, one batch after the other. */
export function ratePerS(surface: LatencySurface, batch: number, share: number): number {
  return (batch * 1000) / latencyAt(surface, batch, share);
}

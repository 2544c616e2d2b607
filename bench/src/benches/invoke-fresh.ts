import { join } from 'node:path';
import { connectApi, guestHeaders, invokePath, smallBody } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import type { LoadResult } from '../load/load.js';
import { median } from '../statistics.js';
import { startPlatform, type Server } from '../servers.js';
import type { Pair } from './invoke.js';

const starts = 3;
const connections = 64;
const firstS = 10;
/** Load between the first seconds and the steady throughput, s. */
const warmUpS = 10;
const steadyLoads = 3;

/**
 * Blocking no-op invocations over 64 connections from the start of a platform on, over several starts: throughput of the
 * first ten seconds, the start of containers included, divided by that of the same platform after 20 s of load.
 */
export async function measureFresh(context: BenchContext, { platform }: Pair): Promise<Measurement[]> {
  const ratios: number[] = [];
  const firsts: number[] = [];
  for (let start = 0; start < starts; start += 1) {
    const dataDir = join(context.temporaryDir, `fresh-${start}`);
    const server = start === 0 ? platform : await startPlatform(context.cleanup, { dataDir });
    const { first, steady } = await loadFresh(context, server);
    ratios.push(first / steady);
    firsts.push(first);
    context.say(`  start ${start + 1}: ${first.toFixed(0)}/s in the first ${firstS} s, ${steady.toFixed(0)}/s later`);
    if (server !== platform) await server.stop();
  }
  return [medianOf('firstTenSecondsRatio', ratios), medianOf('firstTenSecondsPerS', firsts)];
}

async function loadFresh({ cleanup, load, options }: BenchContext, { url }: Server) {
  const api = connectApi(url);
  cleanup.add('connection', () => api.close());
  await api.putAction('fresh');
  api.close();
  const paths = [invokePath('fresh', true)];
  const run = (seconds: number): Promise<LoadResult> =>
    load.run({ baseUrl: url, headers: guestHeaders, body: smallBody, paths, connections, seconds, seed: options.seed });
  const { requestsPerS: first } = await run(firstS);
  await run(warmUpS);
  const later: number[] = [];
  for (let at = 0; at < steadyLoads; at += 1) later.push((await run(options.seconds)).requestsPerS);
  return { first, steady: median(later) };
}

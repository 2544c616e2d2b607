import { writeFile } from 'node:fs/promises';
import autocannon from 'autocannon';
import { percentile, seededChoice } from '../statistics.js';
import { timeoutS, type LoadGenerator, type LoadRequest, type LoadResult } from './load.js';

/** autocannon, inside this process. It is slower than wrk, so throughput ratios come out higher. */
export const autocannonLoad: LoadGenerator = { name: 'autocannon', run };

async function run(request: LoadRequest): Promise<LoadResult> {
  const latenciesMs: number[] = [];
  const statuses = new Map<number, number>();
  const bodies: string[] = [];
  const choose = seededChoice(request.seed, request.paths.length);
  const instance = autocannon({
    url: request.baseUrl,
    connections: request.connections,
    duration: request.seconds,
    timeout: timeoutS,
    method: (request.method ?? 'POST') as 'POST',
    headers: { ...request.headers },
    body: request.body,
    requests: [
      {
        ...(request.paths.length > 1
          ? { setupRequest: (one) => ({ ...one, path: request.paths[choose()] as string }) }
          : { path: request.paths[0] as string }),
        ...(request.bodiesFile !== undefined
          ? { onResponse: (status, body) => void (status >= 200 && status < 300 && bodies.push(body)) }
          : {}),
      },
    ],
  });
  instance.on('response', (_client: unknown, status: number, _bytes: number, responseMs: number) => {
    latenciesMs.push(responseMs);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  });
  const { duration, errors } = await instance;
  if (request.bodiesFile !== undefined) await writeFile(request.bodiesFile, bodies.map((body) => `${body}\n`).join(''));
  return summarize(latenciesMs, statuses, duration, errors);
}

function summarize(
  latenciesMs: readonly number[],
  statuses: ReadonlyMap<number, number>,
  durationS: number,
  socketErrors: number,
): LoadResult {
  if (latenciesMs.length === 0) throw new Error(`autocannon got no answer (${socketErrors} errors)`);
  let failedStatuses = 0;
  for (const [status, count] of statuses) if (status > 399) failedStatuses += count;
  return {
    requests: latenciesMs.length,
    requestsPerS: latenciesMs.length / durationS,
    p50Ms: percentile(latenciesMs, 50),
    p95Ms: percentile(latenciesMs, 95),
    p99Ms: percentile(latenciesMs, 99),
    maxMs: percentile(latenciesMs, 100),
    failedStatuses,
    socketErrors,
    statuses,
  };
}

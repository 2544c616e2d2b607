// The calls of a namespace that has hostile neighbours.
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectApi, headersOf, invokePath, smallBody } from '../api.js';

/** Calls a second, sent whatever the answers take. */
export const callsPerS = 100;
const action = 'victim';
const warmUps = 100;
const timeoutMs = 120_000;

/** What the calls came to. */
export interface VictimCalls {
  /** From the time at which each call was due to its answer, ms. */
  latenciesMs: number[];
  /** Calls that were not answered with 200. */
  errors: number;
}

/** Makes the victim's function and calls it until it is warm. Throws if a call fails. */
export async function warmVictim(url: string, key: string): Promise<void> {
  const api = connectApi(url, key);
  try {
    // One container takes all calls, so that none of them waits for a second one's cold start.
    await api.putAction(action, { concurrency: 200 });
    for (let call = 0; call < warmUps; call += 1) await api.invoke(action);
  } finally {
    api.close();
  }
}

/** Calls the victim's function `calls` times, callsPerS a second. */
export async function callVictim(url: string, key: string, calls: number): Promise<VictimCalls> {
  const agent = new Agent({ keepAlive: true });
  const target = new URL(invokePath(action, true), url);
  const headers = { ...headersOf(key), 'content-length': Buffer.byteLength(smallBody) };
  const call = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const outgoing = request(target, { agent, method: 'POST', headers, timeout: timeoutMs }, (incoming) => {
        incoming.resume();
        incoming.once('error', reject);
        incoming.once('end', () => resolve(incoming.statusCode ?? 0));
      });
      outgoing.once('timeout', () => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)));
      outgoing.once('error', reject);
      outgoing.end(smallBody);
    });
  const beganMs = performance.now();
  const latenciesMs: number[] = [];
  let errors = 0;
  const callAt = async (dueMs: number): Promise<void> => {
    await sleep(Math.max(0, dueMs - performance.now()));
    const status = await call().catch(() => 0);
    latenciesMs.push(performance.now() - dueMs);
    if (status !== 200) errors += 1;
  };
  await Promise.all(Array.from({ length: calls }, (_, at) => callAt(beganMs + (at * 1000) / callsPerS)));
  agent.destroy();
  return { latenciesMs, errors };
}

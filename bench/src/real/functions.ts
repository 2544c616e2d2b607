// A platform with functions of one set of modules.
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import { connectApi, guestHeaders } from '../api.js';
import type { BenchContext } from '../bench.js';
import { startPlatform } from '../servers.js';
import type { FunctionCode, ModuleSet } from './module-sets.js';

const requestTimeoutMs = 600_000;
const MiB = 1024 * 1024;
/** Wait for a snapshot, of which one is made at a time, ms. */
const snapshotTimeoutMs = 60_000;

/** A first call. */
export interface Started {
  /** From acceptance until the code was loaded, or until the answer (ModuleSet.untilAnswer), ms. */
  startMs: number;
  result: Readonly<Record<string, unknown>>;
}

/** A platform of its own with functions of a set. */
export interface Functions {
  /** Makes a function, and resolves with its name. */
  make(): Promise<string>;
  start(action: string, args?: Readonly<Record<string, number>>): Promise<Started>;
  /** Containers that are made ahead, and have modules loaded. */
  ready(): Promise<number>;
  /** Resolves once the action has a snapshot. Rejects if it can have none, or has none in time. */
  hasSnapshot(action: string): Promise<void>;
  /** Size of a template of the set's processes, MiB; 0 without one. */
  templateMiB(): Promise<number>;
  stop(): Promise<void>;
}

/** Makes the code that all functions of the set have; undefined where each has its own. */
export async function sharedCode(set: ModuleSet, folder: string): Promise<FunctionCode | undefined> {
  if (set.build === undefined) return undefined;
  await mkdir(folder, { recursive: true });
  return set.build(folder);
}

/** Starts a platform. `shared`: as sharedCode made it. */
export async function functionsOf(
  { cleanup, temporaryDir }: BenchContext,
  name: string,
  set: ModuleSet,
  shared: FunctionCode | undefined,
  environment: Readonly<Record<string, string>> = {},
): Promise<Functions> {
  const dataDir = join(temporaryDir, name);
  const server = await startPlatform(cleanup, { dataDir, environment });
  const operator = connectApi(server.url, (await readFile(join(dataDir, 'operator.key'), 'utf8')).trim());
  let number = 0;
  const make = async (): Promise<string> => {
    const action = `function${(number += 1)}`;
    const { kind, memoryMiB, requirements, source, snapshot } = set;
    const annotations = [
      ...(requirements ? [{ key: 'requirements', value: requirements }] : []),
      ...(snapshot ? [{ key: 'warm', value: { snapshot } }] : []),
    ];
    await ask(server.url, 'PUT', `actions/${action}`, {
      exec: { kind, ...(shared ?? { code: source?.(number), binary: false }) },
      limits: { memory: memoryMiB, timeout: 300_000 },
      annotations,
    });
    return action;
  };
  const start = async (action: string, args: Readonly<Record<string, number>> = {}): Promise<Started> => {
    const beganMs = performance.now();
    const record = await ask(server.url, 'POST', `actions/${action}?blocking=true`, args);
    const elapsedMs = performance.now() - beganMs;
    const { success, result } = record.response as { success: boolean; result: Record<string, unknown> };
    if (!success) throw new Error(`${action} failed: ${JSON.stringify(result)}`);
    const annotations = record.annotations as { key: string; value: number }[];
    const of = (key: string): number => annotations.find((one) => one.key === key)?.value ?? 0;
    return { startMs: set.untilAnswer === true ? elapsedMs : of('waitTime') + of('initTime'), result };
  };
  const listed = async (): Promise<Pick<Prewarmer, 'imports' | 'action' | 'unfit'>[]> =>
    (await operator.json('GET', '/api/v1/admin/prewarmers')) as Prewarmer[];
  const ready = async (): Promise<number> => (await listed()).filter(({ imports }) => imports.length > 0).length;
  const hasSnapshot = async (action: string): Promise<void> => {
    let own: Pick<Prewarmer, 'unfit'> | undefined;
    for (const beganMs = performance.now(); performance.now() < beganMs + snapshotTimeoutMs; await sleep(20)) {
      own = (await listed()).find((one) => one.action?.endsWith(`/${action}`));
      if (own !== undefined && own.unfit === undefined) return;
    }
    throw new Error(`${action} has no snapshot within ${snapshotTimeoutMs} ms: ${own?.unfit ?? 'it is being made'}`);
  };
  const templateMiB = async (): Promise<number> => {
    const metrics = await (await fetch(new URL('/metrics', server.url))).text();
    const of = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(metrics)?.[1] ?? 0);
    const count = of('gpuwhisk_pair_templates');
    return count === 0 ? 0 : of('gpuwhisk_pair_templates_bytes') / count / MiB;
  };
  const stop = async (): Promise<void> => {
    operator.close();
    await server.stop();
  };
  return { make, start, ready, hasSnapshot, templateMiB, stop };
}

async function ask(url: string, method: string, path: string, body: unknown): Promise<Record<string, unknown>> {
  const answer = await fetch(new URL(`/api/v1/namespaces/_/${path}`, url), {
    method,
    headers: guestHeaders,
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(requestTimeoutMs),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${method} ${path} gave ${answer.status}: ${text.slice(0, 300)}`);
  return JSON.parse(text) as Record<string, unknown>;
}

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { connectApi, guestHeaders } from '../api.js';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import { startPlatform } from '../servers.js';
import { percentile } from '../statistics.js';

/** Functions with the same imports: `code` makes the source of the function of a number. */
interface ModuleSet {
  kind: string;
  code(number: number): string;
  memoryMiB: number;
  requirements?: readonly string[];
  /** Packages in a virtual environment of the archive, which all functions of the set have; `code` is its `__main__.py`. */
  archived?: readonly string[];
  /** Whether further instances are copies of the first one's loaded state. */
  snapshot?: boolean;
}

const python = (imports: string, result: string): ModuleSet['code'] => {
  return (number) => `import time
${imports}

def main(args):
    time.sleep(args.get("holdS", 0))
    return {"number": ${number}, "result": ${result}}
`;
};

const modelCode: ModuleSet['code'] = (number) => `import time
import numpy
weights = numpy.ones(500 << 18, dtype=numpy.float32)

def main(args):
    began = time.perf_counter()
    total = float(weights.sum()) if args.get("reads") else 0
    readMs = (time.perf_counter() - began) * 1000
    time.sleep(args.get("holdS", 0))
    return {"number": ${number}, "result": float(weights[0]), "total": total, "readMs": readMs}
`;

/** By the name in figures. Nothing is declared but packages that an image lacks. */
const sets: Readonly<Record<string, ModuleSet>> = {
  pythonImage: {
    kind: 'python:default',
    memoryMiB: 256,
    code: python('import bs4, dateutil.parser, lxml.etree, requests', 'requests.__version__'),
  },
  nodejsImage: {
    kind: 'nodejs:default',
    memoryMiB: 256,
    code: (number) => `const openwhisk = require('openwhisk');
const express = require('express');
const redis = require('redis');
exports.main = async ({ holdS = 0 }) => {
  await new Promise((resolve) => setTimeout(resolve, holdS * 1000));
  return { number: ${number}, result: [openwhisk, express, redis].map((one) => typeof one) };
};
`,
  },
  numpy: {
    kind: 'python:default',
    memoryMiB: 512,
    requirements: ['numpy==2.2.6', 'scipy==1.15.3'],
    code: python('import numpy, scipy.optimize, scipy.stats', 'float(numpy.arange(4).sum())'),
  },
  pandas: {
    kind: 'python:default',
    memoryMiB: 512,
    requirements: ['numpy==2.2.6', 'pandas==2.2.3'],
    code: python('import pandas', 'int(pandas.Series([1, 2]).sum())'),
  },
  archive: {
    kind: 'python:default',
    memoryMiB: 256,
    archived: ['requests==2.32.3', 'jinja2==3.1.4'],
    code: python('import jinja2, requests', 'requests.__version__'),
  },
  model: {
    kind: 'python:default',
    memoryMiB: 1024,
    requirements: ['numpy==2.2.6'],
    code: modelCode,
    snapshot: true,
  },
  modelLoaded: { kind: 'python:default', memoryMiB: 1024, requirements: ['numpy==2.2.6'], code: modelCode },
};

/** Pause between two functions of a set: what the platform readies meanwhile counts for it, ms. */
const pauseMs = 2000;
const requestTimeoutMs = 600_000;
const atOnce = 8;

interface Started {
  /** From acceptance until the code was loaded, ms. */
  startMs: number;
  /** From the request to the answer at the client, ms. */
  elapsedMs: number;
  /** Time that the function has needed to read its whole model, ms; 0 if it was not asked to, or has none. */
  readMs: number;
}

/** Starts of functions that import real packages, with nothing declared. */
export const real: Bench = {
  summary: 'first calls of functions that import real packages',
  parts: Object.keys(sets),
  async run(context) {
    const measurements: Measurement[] = [];
    for (const [name, set] of Object.entries(sets)) {
      if (context.options.parts.length > 0 && !context.options.parts.includes(name)) continue;
      measurements.push(...(await measureSet(context, name, set)));
    }
    return measurements;
  },
};

/** Setting with which instances leave soon: snapshots of further functions need memory to be made in. */
const leaving = { GPUWHISK_POOL__IDLE_CONTAINER_MS: '2000' };
/** Settings with which every function imports its modules itself. */
const importing = { GPUWHISK_WARM__LEARN: 'false', GPUWHISK_WARM__TEMPLATES: 'false' };
/** Time for which the pool leaves the machine to the function that has taken a process, ms (invoker/src/pool/stem-cells.ts). */
const refillAfterMs = 100;
/** Wait for a snapshot, of which one is made at a time, ms. */
const snapshotTimeoutMs = 60_000;
/** Wait for a process that is ready again, ms. */
const readyTimeoutMs = 10_000;

/** A platform of its own with functions of a set. */
interface Functions {
  /** Makes a function, and resolves with its name. */
  make(): Promise<string>;
  start(action: string, args?: { holdS?: number; reads?: boolean }): Promise<Started>;
  /** Containers that are made ahead, and have modules loaded. */
  ready(): Promise<number>;
  /** Resolves once the action has a snapshot. Rejects if it can have none, or has none in time. */
  hasSnapshot(action: string): Promise<void>;
  stop(): Promise<void>;
}

async function measureSet(context: BenchContext, name: string, set: ModuleSet): Promise<Measurement[]> {
  const { temporaryDir, options, say } = context;
  const { archived } = set;
  const archive = archived && (await zipOf(join(temporaryDir, `${name}-archive`), set.code(0), archived));
  const samples = Math.min(options.samples, 10);
  const own = await functionsOf(context, name, set, archive, set.snapshot ? leaving : {});
  const figures = await measureStarts(name, own, samples, set.snapshot === true);
  await own.stop();
  const plain = await functionsOf(context, `${name}-importing`, set, archive, importing);
  await plain.start(await plain.make());
  const imported: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    await sleep(pauseMs);
    imported.push((await plain.start(await plain.make())).startMs);
  }
  await plain.stop();
  const importedMs = medianOf(`realImportedMs.${name}`, imported);
  const other = figures.find((figure) => figure.name === `realColdMs.${name}.other`);
  say(`  ${name} done`);
  return [
    ...figures,
    importedMs,
    ...(other === undefined ? [] : [{ name: `realSpeedup.${name}`, value: importedMs.value / other.value }]),
  ];
}

async function functionsOf(
  { cleanup, temporaryDir }: BenchContext,
  name: string,
  set: ModuleSet,
  archive: string | undefined,
  environment: Readonly<Record<string, string>> = {},
): Promise<Functions> {
  const dataDir = join(temporaryDir, name);
  const server = await startPlatform(cleanup, { dataDir, environment });
  const operator = connectApi(server.url, (await readFile(join(dataDir, 'operator.key'), 'utf8')).trim());
  let number = 0;
  const make = async (): Promise<string> => {
    const action = `function${(number += 1)}`;
    const { kind, memoryMiB, requirements, code, snapshot } = set;
    const annotations = [
      ...(requirements ? [{ key: 'requirements', value: requirements }] : []),
      ...(snapshot ? [{ key: 'warm', value: { snapshot } }] : []),
    ];
    await ask(server.url, 'PUT', `actions/${action}`, {
      exec: { kind, code: archive ?? code(number), binary: archive !== undefined },
      limits: { memory: memoryMiB, timeout: 300_000 },
      annotations,
    });
    return action;
  };
  const start: Functions['start'] = async (action, args = {}) => {
    const beganMs = performance.now();
    const record = await ask(server.url, 'POST', `actions/${action}?blocking=true`, args);
    const elapsedMs = performance.now() - beganMs;
    const { success, result } = record.response as { success: boolean; result: { readMs?: number } };
    if (!success) throw new Error(`${action} failed: ${JSON.stringify(result)}`);
    const annotations = record.annotations as { key: string; value: number }[];
    const of = (key: string): number => annotations.find((one) => one.key === key)?.value ?? 0;
    return { startMs: of('waitTime') + of('initTime'), elapsedMs, readMs: result.readMs ?? 0 };
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
  const stop = async (): Promise<void> => {
    operator.close();
    await server.stop();
  };
  return { make, start, ready, hasSnapshot, stop };
}

async function measureStarts(
  name: string,
  functions: Functions,
  samples: number,
  copies: boolean,
): Promise<Measurement[]> {
  const { make, start, ready, hasSnapshot } = functions;
  // The first start of all installs packages; it is told apart.
  const installed = await start(await make());
  const again: number[] = [];
  const others: number[] = [];
  const seconds: number[] = [];
  const reads: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    await sleep(pauseMs);
    const action = await make();
    const before = await ready();
    others.push((await start(action)).startMs);
    again.push(...(await readyAgain(ready, before)));
    if (copies) await hasSnapshot(action);
    // The first instance holds a call, so that the second call needs an instance of its own.
    const held = start(action, { holdS: 1 });
    await sleep(100);
    const second = await start(action, { reads: true });
    seconds.push(second.startMs);
    reads.push(second.readMs);
    await held;
  }
  await sleep(pauseMs);
  const actions = await Promise.all(Array.from({ length: atOnce }, make));
  const together = (await Promise.all(actions.map((action) => start(action)))).map(({ startMs }) => startMs);
  return [
    ...(copies ? await measureInstances(name, functions) : []),
    ...(reads.some((ms) => ms > 0) ? [medianOf(`realFirstReadMs.${name}`, reads)] : []),
    { name: `realInstallMs.${name}`, value: installed.startMs },
    medianOf(`realColdMs.${name}.other`, others),
    { name: `realColdP95Ms.${name}.other`, value: percentile(others, 95) },
    medianOf(`realColdMs.${name}.second`, seconds),
    { name: `realColdP95Ms.${name}.second`, value: percentile(seconds, 95) },
    medianOf(`realColdMs.${name}.eight`, together),
    { name: `realColdP95Ms.${name}.eight`, value: percentile(together, 95) },
    ...(again.length === 0 ? [] : [medianOf(`readyAgainMs.${name}`, again)]),
  ];
}

/** Starts of eight further instances of one function, for calls that come at once. */
async function measureInstances(name: string, { make, start, hasSnapshot }: Functions): Promise<Measurement[]> {
  const action = await make();
  await start(action);
  await hasSnapshot(action);
  const all = await Promise.all(Array.from({ length: atOnce + 1 }, () => start(action, { holdS: 2 })));
  const starts = all.map(({ startMs }) => startMs).sort((one, other) => one - other);
  return [medianOf(`realColdMs.${name}.instances`, starts.slice(1))];
}

/** How long it takes until as many containers with modules are ready as before; nothing if there was none, or one is not made. */
async function readyAgain(ready: Functions['ready'], before: number): Promise<number[]> {
  const beganMs = performance.now();
  while (before > 0 && performance.now() < beganMs + readyTimeoutMs) {
    const isReady = (await ready()) >= before;
    const tookMs = performance.now() - beganMs - refillAfterMs;
    // Earlier, none was taken.
    if (isReady) return tookMs > 0 ? [tookMs] : [];
  }
  return [];
}

const installTimeoutMs = 300_000;

/** A zip, in base64, with `__main__.py` and the packages in a virtual environment without compiled files. */
async function zipOf(folder: string, main: string, packages: readonly string[]): Promise<string> {
  const target = join(folder, 'virtualenv', 'lib', 'python3', 'site-packages');
  await mkdir(target, { recursive: true });
  await writeFile(join(folder, '__main__.py'), main);
  const run = (...words: string[]): Promise<string> =>
    runProgram('python3', words, { timeoutMs: installTimeoutMs, cwd: folder });
  await run('-m', 'pip', 'install', '--quiet', '--no-compile', '--only-binary=:all:', '--target', target, ...packages);
  await run('-m', 'zipfile', '-c', 'archive.zip', '__main__.py', 'virtualenv');
  return (await readFile(join(folder, 'archive.zip'))).toString('base64');
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

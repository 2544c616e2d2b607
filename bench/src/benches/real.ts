import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
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
}

const python = (imports: string, result: string): ModuleSet['code'] => {
  return (number) => `import time
${imports}

def main(args):
    time.sleep(args.get("holdS", 0))
    return {"number": ${number}, "result": ${result}}
`;
};

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
    code: python('import numpy\nweights = numpy.ones(500 << 18, dtype=numpy.float32)', 'float(weights[0])'),
  },
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

/** Settings with which every function imports its modules itself. */
const importing = { GPUWHISK_WARM__LEARN: 'false', GPUWHISK_WARM__TEMPLATES: 'false' };
/** Time for which the pool leaves the machine to the function that has taken a process, ms (invoker/src/pool/stem-cells.ts). */
const refillAfterMs = 100;
/** Wait for a process that is ready again, ms. */
const readyTimeoutMs = 10_000;

/** A platform of its own with functions of a set. */
interface Functions {
  /** Makes a function, and resolves with its name. */
  make(): Promise<string>;
  start(action: string, holdS?: number): Promise<Started>;
  /** Containers that are made ahead, and have modules loaded. */
  ready(): Promise<number>;
  stop(): Promise<void>;
}

async function measureSet(context: BenchContext, name: string, set: ModuleSet): Promise<Measurement[]> {
  const { temporaryDir, options, say } = context;
  const { archived } = set;
  const archive = archived && (await zipOf(join(temporaryDir, `${name}-archive`), set.code(0), archived));
  const samples = Math.min(options.samples, 10);
  const own = await functionsOf(context, name, set, archive);
  const figures = await measureStarts(name, own, samples);
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
    const { kind, memoryMiB, requirements, code } = set;
    await ask(server.url, 'PUT', `actions/${action}`, {
      exec: { kind, code: archive ?? code(number), binary: archive !== undefined },
      limits: { memory: memoryMiB, timeout: 300_000 },
      ...(requirements && { annotations: [{ key: 'requirements', value: requirements }] }),
    });
    return action;
  };
  const start = async (action: string, holdS = 0): Promise<Started> => {
    const beganMs = performance.now();
    const record = await ask(server.url, 'POST', `actions/${action}?blocking=true`, { holdS });
    const elapsedMs = performance.now() - beganMs;
    const { success, result } = record.response as { success: boolean; result: unknown };
    if (!success) throw new Error(`${action} failed: ${JSON.stringify(result)}`);
    const annotations = record.annotations as { key: string; value: number }[];
    const of = (key: string): number => annotations.find((one) => one.key === key)?.value ?? 0;
    return { startMs: of('waitTime') + of('initTime'), elapsedMs };
  };

  const ready = async (): Promise<number> => {
    const all = (await operator.json('GET', '/api/v1/admin/prewarmers')) as { imports: string[] }[];
    return all.filter(({ imports }) => imports.length > 0).length;
  };
  const stop = async (): Promise<void> => {
    operator.close();
    await server.stop();
  };
  return { make, start, ready, stop };
}

async function measureStarts(name: string, functions: Functions, samples: number): Promise<Measurement[]> {
  const { make, start, ready } = functions;
  // The first start of all installs packages; it is told apart.
  const installed = await start(await make());
  const again: number[] = [];
  const others: number[] = [];
  const seconds: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    await sleep(pauseMs);
    const action = await make();
    const before = await ready();
    others.push((await start(action)).startMs);
    again.push(...(await readyAgain(ready, before)));
    // The first instance holds a call, so that the second call needs an instance of its own.
    const held = start(action, 1);
    await sleep(100);
    seconds.push((await start(action)).startMs);
    await held;
  }
  await sleep(pauseMs);
  const actions = await Promise.all(Array.from({ length: atOnce }, make));
  const together = (await Promise.all(actions.map((action) => start(action)))).map(({ startMs }) => startMs);
  return [
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

import { setTimeout as sleep } from 'node:timers/promises';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { guestHeaders, invokePath, smallBody, type Api, connectApi, guestKey } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import type { Bench } from '../bench.js';
import { errorsOf, type LoadRequest } from '../load/load.js';
import { runParts, type PartPlatform, startPlatform } from '../servers.js';
import { repositoryDir } from '../machine.js';

const parts = {
  web: measureWeb,
  sequence: measureSequence,
  trigger: measureTrigger,
  migrate: measureMigrate,
};

/** Cost of OpenWhisk's ways to invoke, compared with a plain invocation. */
export const surface: Bench = {
  summary: 'web actions and sequences beside plain invocations, a trigger with a hundred rules, a migration',
  parts: Object.keys(parts),
  run: (context) => runParts(context, parts, (own: PartPlatform) => own),
};

/** The same action by both ways to call it: with a key, and from the web without one. */
const webTargets = [
  { key: 'blocking', path: invokePath('noop', true), headers: guestHeaders },
  { key: 'web', path: '/api/v1/web/guest/default/noop.json', headers: { 'content-type': 'application/json' } },
];

/** A no-op web action over one connection, alternating with blocking invocations of it. */
async function measureWeb(context: BenchContext, { platform, api }: PartPlatform): Promise<Measurement[]> {
  await api.putAction('noop', { annotations: [{ key: 'web-export', value: true }] });
  const { p50Ms, errors } = await compareTargets(context, platform.url, webTargets);
  const { blocking = [], web = [] } = p50Ms;
  return [
    medianOf('webRatio', ratios(blocking, web)),
    medianOf('webP50Ms', web),
    medianOf('blockingP50Ms', blocking),
    { name: 'webErrors', value: errors },
  ];
}

const sequenceTargets = [
  { key: 'one', path: invokePath('noop', true), headers: guestHeaders },
  { key: 'three', path: invokePath('sequence', true), headers: guestHeaders },
];

/** A sequence of three no-ops over one connection, alternating with one no-op alone. */
async function measureSequence(context: BenchContext, { platform, api }: PartPlatform): Promise<Measurement[]> {
  await api.putAction('noop');
  const exec = { kind: 'sequence', components: ['/_/noop', '/_/noop', '/_/noop'] };
  await api.json('PUT', '/api/v1/namespaces/_/actions/sequence', { exec });
  const { p50Ms, errors } = await compareTargets(context, platform.url, sequenceTargets);
  const { one = [], three = [] } = p50Ms;
  return [
    medianOf('sequenceRatio', ratios(one, three)),
    medianOf('sequenceP50Ms', three),
    medianOf('sequenceOneP50Ms', one),
    { name: 'sequenceErrors', value: errors },
  ];
}

const rules = 100;
const action = 'fired';
const trigger = 'hundred';
const warmUps = 3;
const fires = 15;
/** All activations of a fire must be recorded within this time, ms. */
const recordedWithinMs = 10_000;
const base = '/api/v1/namespaces/_';

/** A trigger with a hundred rules on one warm no-op action: from the POST to the start of the last activation. */
async function measureTrigger({ say }: BenchContext, { api }: PartPlatform): Promise<Measurement[]> {
  await api.putAction(action);
  await api.invoke(action);
  await api.json('PUT', `${base}/triggers/${trigger}`, {});
  for (let rule = 0; rule < rules; rule += 1) {
    await api.json('PUT', `${base}/rules/rule${rule}`, { trigger: `/_/${trigger}`, action: `/_/${action}` });
  }
  for (let fired = 0; fired < warmUps; fired += 1) await fireOnce(api);

  const startedMs: number[] = [];
  const answeredMs: number[] = [];
  for (let fired = 0; fired < fires; fired += 1) {
    const sample = await fireOnce(api);
    startedMs.push(sample.startedMs);
    answeredMs.push(sample.answeredMs);
  }
  say(`  ${fires} fires, last start after ${startedMs.map((ms) => ms.toFixed(0)).join(' ')} ms`);
  return [medianOf('trigger100Ms', startedMs), medianOf('trigger100AnsweredMs', answeredMs)];
}

/** Fires once and waits for the last record. Throws unless every rule's action ran. */
async function fireOnce(api: Api): Promise<{ startedMs: number; answeredMs: number }> {
  const postedMs = Date.now();
  const answer = await api.send('POST', `${base}/triggers/${trigger}`, smallBody);
  if (answer.status !== 202) throw new Error(`the fire was answered ${answer.status}: ${answer.text.slice(0, 500)}`);
  const { activationId } = JSON.parse(answer.text) as { activationId: string };
  const { logs } = (await api.json('GET', `${base}/activations/${activationId}`)) as { logs: string[] };
  const results = logs.map((line) => JSON.parse(line) as { success: boolean; activationId?: string });
  const failed = results.find(({ success }) => !success);
  if (results.length !== rules || failed) throw new Error(`not every rule ran: ${JSON.stringify(failed)}`);
  const expected = new Set(results.map((result) => result.activationId));

  for (const deadlineMs = performance.now() + recordedWithinMs; performance.now() < deadlineMs; await sleep(20)) {
    const query = `name=${action}&since=${postedMs}&limit=200`;
    const rows = (await api.json('GET', `${base}/activations?${query}`)) as { activationId: string; start: number }[];
    const starts = rows.filter((row) => expected.has(row.activationId)).map(({ start }) => start);
    if (starts.length === rules) {
      // The next fire begins on an idle platform.
      await sleep(100);
      return { startedMs: Math.max(...starts) - postedMs, answeredMs: answer.elapsedMs };
    }
  }
  throw new Error(`not all ${rules} activations were recorded within ${recordedWithinMs} ms`);
}

const warmUpS = 3;

/** One way to invoke. */
interface Target {
  key: string;
  path: string;
  headers: Readonly<Record<string, string>>;
}

/** Median latencies over one connection, ms, by target and round; and the number of answers that were not 200. */
interface Comparison {
  p50Ms: Readonly<Record<string, number[]>>;
  errors: number;
}

/** Loads each target in turn over one connection, round after round. */
async function compareTargets(
  { options, load, say }: BenchContext,
  baseUrl: string,
  targets: readonly Target[],
): Promise<Comparison> {
  const requestFor = ({ path, headers }: Target, seconds: number): LoadRequest => ({
    baseUrl,
    paths: [path],
    headers,
    body: smallBody,
    connections: 1,
    seconds,
    seed: options.seed,
  });
  let errors = 0;
  for (const target of targets) {
    const warmUp = await load.run({ ...requestFor(target, warmUpS), countStatuses: true });
    errors += errorsOf(warmUp, 200);
  }
  const p50Ms: Record<string, number[]> = Object.fromEntries(targets.map(({ key }) => [key, []]));
  for (let round = 0; round < options.rounds; round += 1) {
    // Every other round runs backwards, so that a drift of the machine affects all targets alike.
    for (const target of round % 2 === 0 ? targets : targets.toReversed()) {
      const result = await load.run(requestFor(target, options.seconds));
      errors += errorsOf(result, 200);
      p50Ms[target.key]?.push(result.p50Ms);
      say(`  round ${round + 1} ${target.key}: p50 ${result.p50Ms.toFixed(3)} ms`);
    }
  }
  return { p50Ms, errors };
}

/** The second's time over the first's, round by round. */
function ratios(base: readonly number[] = [], other: readonly number[] = []): number[] {
  return other.map((value, round) => value / (base[round] as number));
}

const actions = 5000;
const codeBytes = 10_000;
const fillConnections = 8;
const timeoutMs = 300_000;

/** Copies all actions of a platform into an empty one by `gpuwhisk migrate` over the API, twice. */
async function measureMigrate(context: BenchContext, { platform, api }: PartPlatform): Promise<Measurement[]> {
  const { cleanup, temporaryDir, say } = context;
  const source = await startPlatform(cleanup, { dataDir: join(temporaryDir, 'migrate-source') });
  await fill(context, source.url);
  const migrate = (): Promise<number> => runMigrate(context, source.url, platform.url);
  const perS = actions / ((await migrate()) / 1000);
  await checkCount(api);
  const againPerS = actions / ((await migrate()) / 1000);
  await source.stop();
  say(`  ${actions} actions of ${codeBytes} bytes: ${perS.toFixed(0)} a second, ${againPerS.toFixed(0)} when equal`);
  return [
    { name: 'migratePerS', value: perS },
    { name: 'migrateAgainPerS', value: againPerS },
  ];
}

/** Creates the actions; each has different code. */
async function fill({ cleanup }: BenchContext, url: string): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    const api = connectApi(url);
    cleanup.add('connection', () => api.close());
    while (next < actions) {
      const number = next++;
      const code = `function main() { return { number: ${number} }; } // `.padEnd(codeBytes, `${number} `);
      await api.putAction(`action${number}`, { code });
    }
    api.close();
  };
  await Promise.all(Array.from({ length: fillConnections }, worker));
}

async function checkCount(api: Api): Promise<void> {
  const { actions: count } = (await api.json('GET', '/api/v1/namespaces/_/actions?count=true')) as { actions: number };
  if (count !== actions) throw new Error(`the target has ${count} actions, not ${actions}`);
}

/** Runs the command as a user would; resolves with its time from start to end, ms. */
async function runMigrate({ cleanup }: BenchContext, from: string, to: string): Promise<number> {
  const program = join(repositoryDir, 'bin', 'gpuwhisk');
  const keys = ['--auth', guestKey, '--to-auth', guestKey];
  const startedMs = performance.now();
  const child = spawn(process.execPath, [program, 'migrate', '--from', from, '--to', to, ...keys], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
  });
  cleanup.add('migration', () => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  const elapsedMs = performance.now() - startedMs;
  if (code !== 0) throw new Error(`gpuwhisk migrate ended with ${code}: ${output.slice(-2000)}`);
  return elapsedMs;
}

import { TriedSets } from '@gpuwhisk/controller/gpu/scheduler/tried-sets';
import { request as httpRequest } from 'node:http';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import { loadConfig } from '@gpuwhisk/common/config';
import { LogRing, createLogger } from '@gpuwhisk/common/logging';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import { createMetrics } from '@gpuwhisk/common/metrics';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { EmbeddedState } from '@gpuwhisk/common/state/embedded-state';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { DesiredState, DeviceCordons } from '@gpuwhisk/controller/gpu/state/desired-state';
import { GpuWorkloads } from '@gpuwhisk/controller/gpu/state/gpu-workloads';
import { PolicySetting } from '@gpuwhisk/controller/gpu/scheduler/policy-setting';
import { createController } from '@gpuwhisk/controller/create-controller';
import type { ControllerDependencies, Controller } from '@gpuwhisk/controller/create-controller';
import type { ConsoleAddress } from '@gpuwhisk/controller/http/moved-sites';
import { putIdentity } from '@gpuwhisk/controller/authentication/authentication';
import type { InvokeOutcome, InvokeRequest } from '@gpuwhisk/controller/invoke/invoke-service';
import { newCostBook } from '@gpuwhisk/gpu/stages/procure/costs';
import { newShareCounts } from '@gpuwhisk/gpu/share/share-counts';
import { readSchema } from '@gpuwhisk/server/node/schema-files';
import { SimulatedDisk } from '../simulation/simulated-disk.js';

export interface Account {
  subject: string;
  namespace: string;
  uuid: string;
  key: string;
}

const account = (name: string, letter: string): Account => ({
  subject: `${name}-subject`,
  namespace: name,
  uuid: `${name}-uuid`,
  key: letter.repeat(64),
});

export const alice = account('alice', 'a');
export const bob = account('bob', 'b');
/** The account that may use /api/v1/admin. */
export const operator = account('operator', 'o');

/** An Authorization header. */
export function basic({ uuid, key }: Pick<Account, 'uuid' | 'key'>): string {
  return `Basic ${Buffer.from(`${uuid}:${key}`).toString('base64')}`;
}

function entry(
  kind: string,
  options: { isDefault?: boolean; deprecated?: boolean; attached?: boolean; main?: boolean },
) {
  return {
    kind,
    image: { prefix: 'openwhisk', name: `action-${kind.replace(':', '-v')}`, tag: 'nightly' },
    default: options.isDefault ?? false,
    deprecated: options.deprecated ?? false,
    ...(options.attached !== false && { attached: { attachmentName: 'codefile', attachmentType: 'text/plain' } }),
    requireMain: options.main ?? false,
    sentinelledLogs: true,
    stemCells: [],
  };
}

/** Kinds of each variant: default, deprecated, plain code, `main` required. */
export const manifest: RuntimeManifest = {
  runtimes: {
    nodejs: [entry('nodejs:20', { isDefault: true }), entry('nodejs:6', { deprecated: true })],
    python: [entry('python:3.11', { isDefault: true })],
    swift: [entry('swift:5.3', { isDefault: true, attached: false })],
    java: [entry('java:8', { isDefault: true, main: true })],
  },
};

export interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** The body as JSON. */
  json: unknown;
}

export interface RequestOptions {
  /** The caller; default alice. `null` sends no credentials. */
  as?: Account | null;
  /** Sent as JSON, unless a string or bytes. */
  body?: unknown;
  headers?: Record<string, string>;
  /** Parts of the body, sent without a Content-Length. */
  chunks?: string[];
}

export interface Api {
  readonly url: string;
  readonly port: number;
  /** Of the console's listener. */
  readonly consoleUrl: string;
  readonly consolePort: number;
  readonly store: ArtifactStore;
  readonly controller: Controller;
  readonly metrics: Metrics;
  readonly state: EmbeddedState;
  /** Lines that the controller logged. */
  readonly logLines: string[];
  /** Requests that reached the invoker. */
  readonly invocations: InvokeRequest[];
  /** Sets the function that produces the invoker's answers; it may throw. */
  onInvoke(answer: (request: InvokeRequest) => InvokeOutcome | Promise<InvokeOutcome>): void;
  request(method: string, path: string, options?: RequestOptions): Promise<Reply>;
  close(): Promise<void>;
}

export interface ApiSettings {
  limits?: Record<string, number>;
  /** Other settings of the platform. */
  config?: object;
  /** Wraps the store that the controller uses. */
  wrapStore?: (store: ArtifactStore) => ArtifactStore;
  health?: Record<string, string>;
  /** The GPU queue and decisions that the API shows; absent: empty. */
  gpuScheduler?: ControllerDependencies['gpuScheduler'];
  /** The learned data of functions on GPUs; absent: none. */
  performanceData?: Partial<ControllerDependencies['performanceData']>;
  performanceViews?: Partial<ControllerDependencies['performanceViews']>;
  /** The costs that the API shows; absent: none. */
  costLedger?: ControllerDependencies['costLedger'];
  /** Rented machines; absent: there is no provider. */
  procurement?: NonNullable<ControllerDependencies['procurement']>;
  prewarmers?: readonly Prewarmer[];
  clock?: Clock;
  /** URL of the API gateway; absent: there is no gateway. */
  gatewayUrl?: string | undefined;
  /** Where the console is, or `off`; absent: where its listener is. */
  consoleAddress?: ConsoleAddress | 'off';
  /** Sites of the console's listener; absent: none. */
  sites?: NonNullable<ControllerDependencies['sites']>;
}

/** Default limits: so high that tests reach them only where they set others. */
const roomy = { invocationsPerMinute: 1_000_000, firesPerMinute: 1_000_000 };

const nothingShown: ControllerDependencies['performanceViews'] = {
  ...{ functions: () => [], quotas: () => [], models: () => [], degradations: () => ({ models: [], drifts: [] }) },
  trialsOf: () => ({ state: 'none', kinds: [] }),
};

const nothingLearned: ControllerDependencies['performanceData'] = {
  forecasts: { views: () => [] },
  shareCounts: newShareCounts(),
  forgetFunction: () => false,
  forgetQuota: () => false,
  forgetModel: () => false,
  trials: { written: () => undefined, deleted: () => undefined, want: () => undefined, cancel: () => false },
};

/** A GPU scheduler without GPUs and with an empty queue. */
export const idleGpuScheduler: ControllerDependencies['gpuScheduler'] = {
  ...{ queued: () => [], decisions: () => [], instances: () => [], epoch: 1 },
  trialSince: () => ({ tasks: [], places: [], models: [] }),
  savedView: () => ({ format: 'gpuwhisk view', version: 1 }),
  isQueued: () => false,
  cancel: () => undefined,
  geometry: () => undefined,
  triedSets: () => new TriedSets([]),
};

/** Starts the real controller on a real port, with a store in memory and an invoker with canned answers. */
export async function startApi(settings: ApiSettings = {}): Promise<Api> {
  const random = seededRandom(1);
  const memory = simulatedStore({ clock: systemClock, random, latencyMs: 0 });
  const store = settings.wrapStore?.(memory) ?? memory;
  for (const one of [alice, bob, operator]) await putIdentity(store, one);
  const logLines: string[] = [];
  const invocations: InvokeRequest[] = [];
  let answer: (request: InvokeRequest) => InvokeOutcome | Promise<InvokeOutcome> = () => ({
    type: 'accepted',
    activationId: 'a'.repeat(32),
  });
  const metrics = createMetrics();
  const logRing = new LogRing({ write: (line) => void logLines.push(line) });
  const disk = new SimulatedDisk(systemClock, random, 0);
  const { bus, marks, close: closeLog } = await openDurable({ disk, folder: '/log', clock: systemClock, random });
  await bus.ensureTopic('compositions0', { durable: true, maxPendingMessages: 1000, maxPendingBytes: Infinity });
  const clock = settings.clock ?? systemClock;
  const state = embeddedState(clock);
  const logger = createLogger({ level: 'warn', destination: logRing });
  const gpuTable = new GpuTable(state, clock, logger);
  await gpuTable.open();
  const gpuWorkloads = new GpuWorkloads({ store, state, table: gpuTable, clock, random, logger });
  await gpuWorkloads.open();
  const gpuCordons = new DeviceCordons(store, state, clock);
  const records = new RecordWriter(store, systemClock, logger);
  const config = loadConfig({
    // Records of tests end at times that are easy to read.
    base: {
      operators: [operator.subject],
      recordTtlHours: 0,
      limits: { ...roomy, ...settings.limits },
      ...settings.config,
    },
  });
  const lease = { epoch: 1 };
  const policySetting = new PolicySetting({ store, state, clock, logger, lease, options: config.gpu });
  await policySetting.open();
  const controller = createController({
    store,
    clock,
    records,
    random,
    config,
    policySetting,
    gatewayUrl: () => settings.gatewayUrl,
    consoleAddress: () => {
      const { consoleAddress = { url: consoleUrl, isConfigured: false } } = settings;
      return consoleAddress === 'off' ? undefined : consoleAddress;
    },
    sites: settings.sites ?? [],
    readSchema,
    manifest: () => manifest,
    logger,
    logRing,
    metrics,
    invoker: {
      invoke: async (request) => {
        invocations.push(request);
        return answer(request);
      },
    },
    state,
    bus,
    gpuTable,
    gpuWorkloads,
    gpuCordons,
    costLedger: settings.costLedger ?? { between: () => Promise.resolve(newCostBook()) },
    ...(settings.procurement && { procurement: settings.procurement }),
    gpuDesired: new DesiredState({ state, lease, logger }),
    gpuScheduler: settings.gpuScheduler ?? idleGpuScheduler,
    performanceData: { ...nothingLearned, ...settings.performanceData },
    performanceViews: { ...nothingShown, ...settings.performanceViews },
    marks,
    instance: 0,
    invokersHealth: () => settings.health ?? { 'invoker0/0': 'up' },
    prewarmers: () => settings.prewarmers ?? [],
    build: { date: '2026-01-01T00:00:00Z', number: 'test' },
  });
  await controller.composing.open();
  const server = await systemNetwork.listen(controller.handle, { host: '127.0.0.1', port: 0 });
  const consoleServer = await systemNetwork.listen(controller.handleConsole, { host: '127.0.0.1', port: 0 });
  const consoleUrl = `http://127.0.0.1:${consoleServer.port}`;
  const api: Api = {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    consoleUrl,
    consolePort: consoleServer.port,
    store: memory,
    controller,
    metrics,
    state,
    logLines,
    invocations,
    onInvoke: (given) => {
      answer = given;
    },
    request: (method, path, options) => send(server.port, method, path, options ?? {}),
    close: async () => {
      await Promise.all([server.close(1000), consoleServer.close(1000)]);
      await controller.composing.close(1000);
      await closeLog();
      await records.close();
      await memory.close();
    },
  };
  return api;
}

/** Sends a request to a port of this machine. */
export function send(port: number, method: string, path: string, options: RequestOptions): Promise<Reply> {
  const { as = alice, body, chunks } = options;
  const headers: Record<string, string> = {};
  if (as !== null) headers.authorization = basic(as);
  if (body !== undefined || chunks !== undefined) headers['content-type'] = 'application/json';
  Object.assign(headers, options.headers);
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ port, host: '127.0.0.1', method, path, headers, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(parts).toString('utf8');
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          get json(): unknown {
            return JSON.parse(text);
          },
        });
      });
    });
    outgoing.on('error', reject);
    for (const chunk of chunks ?? []) outgoing.write(chunk);
    if (body === undefined) outgoing.end();
    else outgoing.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  });
}

/** The text in the error body of a reply. */
export function errorOf(reply: Reply): string {
  return (reply.json as { error: string }).error;
}

/** Path of an action in the caller's own namespace. */
export function actionPath(name: string): string {
  return `/api/v1/namespaces/_/actions/${encodeURIComponent(name)}`;
}

/** The body of a PUT that creates a small action. */
export const hello = { exec: { kind: 'nodejs:20', code: 'function main() { return {}; }' } };

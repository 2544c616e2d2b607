// A platform on the device, and the kit's functions on it.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Device } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { guestHeaders, guestKey, headersOf } from '../../api.js';
import { repositoryDir } from '../../machine.js';
import { startPlatform } from '../../servers.js';
import type { Server } from '../../servers.js';
import type { Stage } from './stage.js';

const requestTimeoutMs = 100_000;
const pollMs = 100;
const commandTimeoutMs = 20_000;
/** Host memory of a function, MiB: PyTorch takes 3 GiB to load. */
const [torchHostMiB, driverHostMiB] = [4096, 256];
const guests = join(repositoryDir, 'bench/gpu/guests');

/** Guest programs: with PyTorch, or on the driver API alone. */
export type GuestKind = 'torch' | 'driver';

/** A stage whose functions are of one kind. */
export type KitStage = Stage & { kind: GuestKind };

/** A run of a function. */
export interface Run {
  /** From the request to the record at the client, ms. */
  elapsedMs: number;
  success: boolean;
  /** The function's result, or its error. */
  result: JsonObject;
  start: number;
  end: number;
  logs: string[];
  /** Annotations by name. */
  annotations: Record<string, unknown>;
}

/** A device as the API lists it. */
export type ShownDevice = Device & {
  usedMemoryMiB: number;
  functions: { action?: string; share: number; heldMiB?: number; running: number }[];
};

/** Settings of one of the kit's functions. */
export interface FunctionSettings {
  memoryMiB?: number;
  /** Default: none, as a newcomer's function has it. */
  mpsPercent?: number;
  idempotent?: boolean;
  /** Modules that its pre-warmer has loaded. */
  imports?: string[];
}

/** The platform and what the stage asks of it. All methods reject with an Error that has the answer. */
export interface KitPlatform {
  server: Server;
  /** Environment in which the reference program finds the device. */
  env: NodeJS.ProcessEnv;
  devices(): Promise<ShownDevice[]>;
  /** Makes a function from the guest program of this kind. */
  make(name: string, kind: GuestKind, guest: string, settings: FunctionSettings): Promise<void>;
  /** Makes a function from source. */
  makeFrom(name: string, code: string, settings: FunctionSettings): Promise<void>;
  run(name: string, params?: JsonObject): Promise<Run>;
  /** Loads a function's model. */
  load(name: string): Promise<void>;
  /** Output of `wsk` with these arguments. */
  wsk(...args: string[]): Promise<string>;
}

const namespace = '/api/v1/namespaces/_';

/** Variables of the stand-in of a platform's own, so that other programs see its device. */
function standInEnv(dataDir: string): NodeJS.ProcessEnv {
  const socket = join(dataDir, 'gpus', 'gpus.sock');
  return { ...process.env, GPUWHISK_SIM_SOCKET: socket };
}

/** Starts an MPS daemon that the platform finds as an operator's. Rejects if it does not start. */
async function startDaemon(stage: Stage): Promise<Record<string, string>> {
  const own = {
    CUDA_MPS_PIPE_DIRECTORY: join(stage.work, 'mps', 'pipe'),
    CUDA_MPS_LOG_DIRECTORY: join(stage.work, 'mps', 'log'),
  };
  for (const path of Object.values(own)) await mkdir(path, { recursive: true });
  const options = { env: { ...process.env, ...own }, timeout: commandTimeoutMs };
  const program = 'nvidia-cuda-mps-control';
  await promisify(execFile)(program, ['-multiuser-server', '-d'], options).catch(() =>
    promisify(execFile)(program, ['-d'], options),
  );
  stage.cleanup.add('MPS', async () => {
    const child = spawn(program, [], { ...options, stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin.end('quit\n');
    await once(child, 'exit');
  });
  return own;
}

async function start(stage: KitStage, name: string, environment: Record<string, string>): Promise<KitPlatform> {
  const dataDir = join(stage.work, name);
  const given = Object.fromEntries(
    Object.entries(process.env).flatMap(([key, value]) =>
      key.startsWith('GPUWHISK_') && key !== 'GPUWHISK_GPU_DAY' ? [[key, value ?? '']] : [],
    ),
  );
  const server = await startPlatform(stage.cleanup, {
    dataDir,
    environment: {
      ...given,
      GPUWHISK_GPUS: stage.simulated ? 'sim:h100' : 'auto',
      // The first calls of a framework take longer than a web request waits.
      GPUWHISK_BLOCKING_WAIT_MS: '90000',
      ...environment,
    },
  });
  for (const line of server
    .output()
    .split('\n')
    .filter((one) => /GPU|note:|MPS/.test(one)))
    stage.note(line.trim());
  return client(server, dataDir, stage);
}

function client(server: Server, dataDir: string, { simulated, kind }: KitStage): KitPlatform {
  const hostMiB = kind === 'torch' ? torchHostMiB : driverHostMiB;
  const ask = async (method: string, path: string, body?: JsonObject, headers = guestHeaders): Promise<Response> =>
    fetch(new URL(path, server.url), {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
  const json = async (
    method: string,
    path: string,
    body?: JsonObject,
    headers?: typeof guestHeaders,
  ): Promise<unknown> => {
    const answer = await ask(method, path, body, headers);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} gave ${answer.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text);
  };
  const makeFrom: KitPlatform['makeFrom'] = async (name, code, settings) => {
    const { memoryMiB = 2048, mpsPercent, idempotent, imports } = settings;
    const annotations: JsonObject[] = [
      { key: 'gpu', value: { memoryMiB, ...(mpsPercent !== undefined && { mpsPercent }) } },
      ...(idempotent ? [{ key: 'idempotent', value: true }] : []),
      ...(imports ? [{ key: 'warm', value: { imports, cuda: true } }] : []),
    ];
    const limits = { memory: hostMiB, timeout: 80_000 };
    const action = { exec: { kind: 'python:3', code }, limits, annotations };
    await json('PUT', `${namespace}/actions/${name}?overwrite=true`, action);
  };
  return {
    server,
    env: simulated ? standInEnv(dataDir) : process.env,
    async devices() {
      const key = (await readFile(join(dataDir, 'operator.key'), 'utf8')).trim();
      return (await json('GET', '/api/v1/gpu/devices', undefined, headersOf(key))) as ShownDevice[];
    },
    async make(name, kind, guest, settings) {
      await makeFrom(name, await readFile(join(guests, kind, `${guest}.py`), 'utf8'), settings);
    },
    makeFrom,
    async run(name, params = {}) {
      const beganMs = performance.now();
      const answer = await ask('POST', `${namespace}/actions/${name}?blocking=true`, params);
      const text = await answer.text();
      let record = JSON.parse(text) as JsonObject;
      if (answer.status === 202) record = await recordOf(json, String(record.activationId));
      else if (!('response' in record))
        throw new Error(`invoking ${name} gave ${answer.status}: ${text.slice(0, 300)}`);
      return runOf(record, performance.now() - beganMs);
    },
    async load(name) {
      await json('POST', `/api/v1/gpu/functions/${name}/model`);
    },
    async wsk(...args) {
      const program = join(repositoryDir, 'bin', 'wsk');
      const env = { ...process.env, WHISK_APIHOST: server.url, WHISK_AUTH: guestKey };
      const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
        env,
        timeout: commandTimeoutMs,
      });
      return stdout;
    },
  };
}

async function recordOf(json: (method: string, path: string) => Promise<unknown>, id: string): Promise<JsonObject> {
  const untilMs = performance.now() + requestTimeoutMs;
  for (;;) {
    try {
      return (await json('GET', `${namespace}/activations/${id}`)) as JsonObject;
    } catch (error) {
      if (performance.now() > untilMs) throw error;
      await sleep(pollMs);
    }
  }
}

function runOf(record: JsonObject, elapsedMs: number): Run {
  const response = record.response as JsonObject;
  const annotations = record.annotations as unknown as { key: string; value: unknown }[];
  return {
    elapsedMs,
    success: response.success === true,
    result: response.result as JsonObject,
    start: Number(record.start),
    end: Number(record.end),
    logs: (record.logs ?? []) as string[],
    annotations: Object.fromEntries(annotations.map(({ key, value }) => [key, value])),
  };
}

/**
 * Starts the platform on the device, with MPS of its own; if its device is not shared by MPS, with a daemon beside it; if that
 * fails, too, in time slices. Rejects if it has no device.
 */
export async function startKitPlatform(stage: KitStage): Promise<KitPlatform> {
  const first = await start(stage, 'data', stage.simulated ? {} : { GPUWHISK_GPU__MANAGE__MPS: 'auto' });
  const [device] = await first.devices();
  if (device === undefined) throw new Error('The platform found no GPU.');
  if (device.mode === 'mps' || device.mode === 'mig') return first;
  stage.note(`The platform's own MPS is not in force (mode ${device.mode}).`);
  await first.server.stop(); // The daemon's clients must find the device free.
  try {
    return await start(stage, 'beside', await startDaemon(stage));
  } catch (error) {
    stage.note(`No MPS daemon beside it: ${(error as Error).message.split('\n')[0]}`);
    return start(stage, 'turns', {});
  }
}

// Loads that hostile namespaces put on the platform.
import { setTimeout as sleep } from 'node:timers/promises';
import { invokePath, smallBody } from '../api.js';

/** Sends a request as a namespace and resolves with its status when the answer has been read. */
export type Send = (method: string, path: string, body?: string | readonly Buffer[]) => Promise<number>;

/** A load of one or more hostile namespaces. */
export interface Load {
  /** Strikes a second of all namespaces together, whatever their answers take. */
  perS: number;
  /** Strikes under way at most; further ones are left out. */
  mostOpen: number;
  /** Settings of the platform. */
  environment?: Readonly<Record<string, string>>;
  /** Records that each namespace has besides its own: its newest is copied. All namespaces share the number. */
  records?: number;
  /** Whether the platform has simulated GPUs. */
  simulated?: boolean;
  /** What a namespace does before the load begins. */
  prepare(send: Send): Promise<void>;
  /** The `at`-th strike. */
  strike(send: Send, at: number): Promise<unknown>;
}

const MiB = 1024 * 1024;
const namespace = '/api/v1/namespaces/_';
/** Of the code that is called large; a PUT may have 48 MiB. */
const largeBytes = 46 * MiB;

const put = async (send: Send, name: string, action: object): Promise<void> => {
  const status = await send('PUT', `${namespace}/actions/${name}?overwrite=true`, JSON.stringify(action));
  if (status !== 200) throw new Error(`PUT of ${name} gave ${status}`);
};
const putCode = (send: Send, name: string, code: string, kind = 'nodejs:default'): Promise<void> =>
  put(send, name, { exec: { kind, code } });
const invoke = (send: Send, name: string): Promise<number> => send('POST', invokePath(name, true), smallBody);
const invokeWell = async (send: Send, name: string): Promise<void> => {
  const status = await invoke(send, name);
  if (status !== 200) throw new Error(`invoking ${name} gave ${status}`);
};
const nothingToPrepare = (): Promise<void> => Promise.resolve();

/** The JSON of a PUT with large code that differs each time. */
const padding = Buffer.alloc(largeBytes, 'gpuwhisk');
const largePut = (code: string): readonly Buffer[] => [
  Buffer.from(`{"exec":{"kind":"nodejs:default","code":"${code} /*`),
  padding,
  Buffer.from('*/"}}'),
];

/** Records of nearly the largest size, 50 MB together. */
const prepareLargeRecords = async (send: Send): Promise<void> => {
  await putCode(send, 'large', `function main() { return { text: 'x'.repeat(900000) }; }`);
  for (let made = 0; made < 55; made += 1) await invokeWell(send, 'large');
};

const streamedPaths = Array.from({ length: 16 }, (_, at) => `namespaces/_/activations?limit=${200 - at}`);
const streamPath = `/api/v1/live?${streamedPaths.map((of) => `of=${encodeURIComponent(of)}`).join('&')}`;

const records = 100_000;

/** Every load by its name. */
export const loads: Readonly<Record<string, Load>> = {
  streams: {
    perS: 10,
    mostOpen: 400,
    prepare: prepareLargeRecords,
    strike: (send) => send('GET', streamPath),
  },
  lists: {
    perS: 10,
    mostOpen: 100,
    prepare: prepareLargeRecords,
    strike: (send) => send('GET', `${namespace}/activations?docs=true&limit=200`),
  },
  counts: {
    perS: 50,
    mostOpen: 500,
    records,
    async prepare(send) {
      await putCode(send, 'one', 'function main() { return {}; }');
      await invokeWell(send, 'one');
    },
    strike: (send, at) =>
      send('GET', `${namespace}/activations?${at % 2 === 0 ? 'count=true' : `limit=1&skip=${records}`}`),
  },
  puts: {
    perS: 1,
    mostOpen: 8,
    prepare: nothingToPrepare,
    strike: (send, at) =>
      send('PUT', `${namespace}/actions/large?overwrite=true`, largePut(`function main() { return { at: ${at} }; }`)),
  },
  coldStarts: {
    perS: 1,
    mostOpen: 20,
    async prepare(send) {
      // The process ends after each call, so that the next one is a cold start.
      const code = largePut('function main() { setTimeout(() => process.exit(), 10); return {}; }');
      const status = await send('PUT', `${namespace}/actions/cold?overwrite=true`, code);
      if (status !== 200) throw new Error(`PUT of large code gave ${status}`);
    },
    strike: (send) => invoke(send, 'cold'),
  },
  builds: {
    perS: 2,
    mostOpen: 20,
    prepare: nothingToPrepare,
    async strike(send, at) {
      const code = `const char *gpuwhisk_main(const char *json) { (void)json; return "{\\"at\\":${at}}"; }`;
      await putCode(send, `build${at}`, code, 'native:default');
      return invoke(send, `build${at}`);
    },
  },
  logs: {
    perS: 2,
    mostOpen: 20,
    prepare: (send) =>
      putCode(
        send,
        'flood',
        `const fs = require('fs');
         const block = Buffer.alloc(65536, 'x'.repeat(99) + '\\n');
         function main() {
           const end = Date.now() + 1000;
           while (Date.now() < end) fs.writeSync(1, block);
           return {};
         }`,
      ),
    strike: (send) => invoke(send, 'flood'),
  },
  installs: {
    perS: 1,
    mostOpen: 20,
    prepare: nothingToPrepare,
    async strike(send, at) {
      // Another set of packages each time; wheel.ts has the package.
      const annotations = [{ key: 'requirements', value: [`gpuwhisk-sample>=0.${at}`] }];
      const code = 'import gpuwhisk_sample\ndef main(args):\n    return {}\n';
      await put(send, `install${at}`, { exec: { kind: 'python:default', code }, annotations });
      return invoke(send, `install${at}`);
    },
  },
  jobs: {
    perS: 100,
    mostOpen: 1000,
    environment: { GPUWHISK_GPUS: 'sim:a100-40x2' },
    simulated: true,
    prepare: (send) =>
      put(send, 'job', {
        exec: { kind: 'python:default', code: 'def main(args):\n    return {}\n' },
        annotations: [{ key: 'gpu', value: { memoryMiB: 3000, mpsPercent: 50 } }],
        limits: { memory: 512 },
      }),
    strike: (send) => send('POST', '/api/v1/gpu/jobs', '{"action":"job"}'),
  },
};

const burning = `function main({ share, seconds }) {
  const began = performance.now();
  return new Promise((resolve) => {
    const step = () => {
      const goneMs = performance.now() - began;
      if (goneMs > seconds * 1000) return resolve({});
      const spentMs = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
      while (spentMs() < goneMs * share && performance.now() < began + goneMs + 20);
      setTimeout(step, 2);
    };
    step();
  });
}`;
/** Time for the cold starts of what burns, ms. */
const burnStartsMs = 3000;

/**
 * Lets the namespaces burn `cores` together for `seconds`, each in its own sandbox, in as many more as this takes. Resolves
 * once they run.
 */
export async function burn(sends: readonly Send[], cores: number, seconds: number): Promise<void> {
  const count = Math.max(sends.length, Math.ceil(cores * 2));
  const body = JSON.stringify({ share: cores / count, seconds });
  for (const send of sends) {
    await put(send, 'burn', { exec: { kind: 'nodejs:default', code: burning }, limits: { timeout: 300_000 } });
  }
  for (let at = 0; at < count; at += 1) {
    const status = await (sends[at % sends.length] as Send)('POST', invokePath('burn', false), body);
    if (status !== 202) throw new Error(`invoking burn gave ${status}`);
  }
  await sleep(burnStartsMs);
}

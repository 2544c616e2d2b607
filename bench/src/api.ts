import { Agent, request } from 'node:http';

/** OpenWhisk's well-known guest key, which standalone accepts. */
export const guestKey =
  '23bc46b1-71f6-4ed5-8c54-816aa4f8c502:123zO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';

/** Headers of a request with a JSON body that is authorized by `key`. */
export function headersOf(key: string): Readonly<Record<string, string>> {
  return { authorization: `Basic ${Buffer.from(key).toString('base64')}`, 'content-type': 'application/json' };
}

export const guestHeaders = headersOf(guestKey);

/** A small request body, sent to the platform and to the bare server alike. */
export const smallBody = '{"payload":"bench"}';

/** Code that answers `{}`. */
export const noopCode = {
  nodejs: 'function main() { return {}; }',
  python: 'def main(args):\n    return {}\n',
} as const;
/** Runtime families that the benches use. */
export type Family = keyof typeof noopCode;

/** An HTTP answer, and the time from the request sent to the body read. */
export interface Answer {
  status: number;
  text: string;
  elapsedMs: number;
}

/** Settings of a new action. */
export interface ActionSettings {
  kind?: string;
  code?: string;
  memoryMiB?: number;
  concurrency?: number;
  annotations?: readonly { key: string; value: unknown }[];
}

/** A client of the platform's API over one kept-alive connection. */
export interface Api {
  /** The server's URL. */
  baseUrl: string;
  send(method: string, path: string, body?: string): Promise<Answer>;
  /** As send, with the answer parsed. Throws for a status that is not 2xx. */
  json(method: string, path: string, body?: unknown): Promise<unknown>;
  putAction(name: string, settings?: ActionSettings): Promise<void>;
  deleteAction(name: string): Promise<void>;
  /** A blocking invocation. Throws unless it ends with 200. */
  invoke(name: string): Promise<Answer>;
  /** Activations of `action` that started at `sinceMs` (epoch ms) or later. */
  countActivations(action: string, sinceMs: number): Promise<number>;
  /** Runs so far by state of their container, from the platform's metrics. */
  startCounts(): Promise<StartCounts>;
  /** The first value of a metric. */
  metric(name: string): Promise<number>;
  close(): void;
}

/** Runs by the state of their container. */
export interface StartCounts {
  cold: number;
  prewarmed: number;
  injected: number;
  warm: number;
}

const timeoutMs = 120_000;

/** Path of an invocation. */
export function invokePath(action: string, blocking: boolean): string {
  return `/api/v1/namespaces/_/actions/${action}?blocking=${blocking}`;
}

/** A client of the server at `baseUrl`, by default as the guest. */
export function connectApi(baseUrl: string, key = guestKey): Api {
  const authorized = headersOf(key);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const namespace = '/api/v1/namespaces/_';

  const send = (method: string, path: string, body?: string): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
      const options = { agent, method, headers: { ...authorized, ...headers }, timeout: timeoutMs };
      const startedMs = performance.now();
      const outgoing = request(new URL(path, baseUrl), options, (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.once('error', reject);
        incoming.once('end', () => {
          const elapsedMs = performance.now() - startedMs;
          resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString(), elapsedMs });
        });
      });
      outgoing.once('timeout', () => outgoing.destroy(new Error(`${method} ${path}: no answer in ${timeoutMs} ms`)));
      outgoing.once('error', reject);
      outgoing.end(body);
    });

  const json = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await send(method, path, body === undefined ? undefined : JSON.stringify(body));
    if (answer.status < 200 || answer.status > 299) {
      throw new Error(`${method} ${path} gave ${answer.status}: ${answer.text.slice(0, 500)}`);
    }
    return JSON.parse(answer.text);
  };

  return {
    baseUrl,
    send,
    json,
    async putAction(
      name,
      { kind = 'nodejs:default', code = noopCode.nodejs, memoryMiB, concurrency, annotations } = {},
    ) {
      const limits = {
        ...(memoryMiB === undefined ? {} : { memory: memoryMiB }),
        ...(concurrency === undefined ? {} : { concurrency }),
      };
      const action = { exec: { kind, code }, limits, ...(annotations ? { annotations } : {}) };
      await json('PUT', `${namespace}/actions/${name}?overwrite=true`, action);
    },
    async deleteAction(name) {
      await json('DELETE', `${namespace}/actions/${name}`);
    },
    async invoke(name) {
      const answer = await send('POST', invokePath(name, true), smallBody);
      if (answer.status !== 200) {
        throw new Error(`invoking ${name} gave ${answer.status}: ${answer.text.slice(0, 500)}`);
      }
      return answer;
    },
    async countActivations(action, sinceMs) {
      const path = `${namespace}/activations?count=true&name=${action}&since=${sinceMs}`;
      const { activations } = (await json('GET', path)) as { activations: number };
      return activations;
    },
    async startCounts() {
      const { status, text } = await send('GET', '/metrics');
      if (status !== 200) throw new Error(`GET /metrics gave ${status}`);
      return parseStartCounts(text);
    },
    async metric(name) {
      const { status, text } = await send('GET', '/metrics');
      const line = text.split('\n').find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`));
      if (status !== 200 || line === undefined) throw new Error(`GET /metrics gave ${status} without ${name}`);
      return Number(line.slice(line.lastIndexOf(' ') + 1));
    },
    close() {
      agent.destroy();
    },
  };
}

/** Reads the start counts from a text in Prometheus format. Throws Error for an unknown start. */
export function parseStartCounts(text: string): StartCounts {
  const counts: StartCounts = { cold: 0, prewarmed: 0, injected: 0, warm: 0 };
  for (const [, start, count] of text.matchAll(/^gpuwhisk_activation_starts_total\{.*start="(\w+)".*\} (\S+)$/gm)) {
    if (start === undefined || !(start in counts)) throw new Error(`/metrics has the unknown start '${start}'`);
    counts[start as keyof StartCounts] += Number(count);
  }
  return counts;
}

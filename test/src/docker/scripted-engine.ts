import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';

/** Answers a call with the JSON returned. A function that returns undefined answers by itself, or never. */
export type Answer = (request: IncomingMessage, response: ServerResponse, id: string) => object | undefined;

/** An engine with scripted answers, for faults that a real engine cannot be made to have. */
export interface ScriptedEngine {
  socketPath: string;
  /** All calls until now, such as `POST /containers/create`. */
  calls: string[];
  /** The engine's containers, each with the stream of its output. */
  containers: Map<string, { running: boolean; output?: Duplex }>;
  /** Replaces the answer to calls whose method and path match. */
  on(pattern: RegExp, answer: Answer): void;
  close(): Promise<void>;
}

/** Starts an engine in a folder of its own; every image exists and has `imageLabels`. */
export async function startScriptedEngine(imageLabels: Record<string, string> = {}): Promise<ScriptedEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-engine-'));
  const socketPath = join(folder, 'socket');
  const calls: string[] = [];
  const containers: ScriptedEngine['containers'] = new Map();
  const scripted: { pattern: RegExp; answer: Answer }[] = [];
  let made = 0;
  const usual: { pattern: RegExp; answer: Answer }[] = [
    {
      pattern: /^POST \/containers\/create$/,
      answer: () => {
        const id = `made${++made}`;
        containers.set(id, { running: false });
        return { Id: id };
      },
    },
    {
      pattern: /^POST \/containers\/\w+\/start$/,
      answer: (_, __, id) => {
        const container = containers.get(id);
        if (container) container.running = true;
        return {};
      },
    },
    {
      pattern: /^GET \/containers\/\w+\/json$/,
      answer: (_, __, id) => ({
        State: { Running: containers.get(id)?.running ?? false, OOMKilled: false, ExitCode: 0, Pid: 0 },
        NetworkSettings: { Networks: { bridge: { IPAddress: '127.0.0.1' } } },
      }),
    },
    {
      pattern: /^DELETE \/containers\//,
      answer: (_, __, id) => {
        containers.get(id)?.output?.destroy();
        containers.delete(id);
        return {};
      },
    },
    {
      pattern: /^GET \/containers\/json$/,
      answer: () =>
        Object.assign(
          [],
          [...containers.keys()].map((Id) => ({ Id })),
        ),
    },
    { pattern: /^GET \/images\//, answer: () => ({ Id: 'image', Config: { Labels: imageLabels } }) },
    { pattern: /./, answer: () => ({}) },
  ];
  const callOf = ({ method = '', url = '' }: IncomingMessage): string => {
    const call = `${method} ${url.replace(/^\/v[\d.]+/, '').replace(/\?.*/, '')}`;
    calls.push(call);
    return call;
  };
  const idOf = (call: string): string => /\/containers\/(\w+)/.exec(call)?.[1] ?? '';
  const server = createServer((request, response) => {
    const call = callOf(request);
    request.resume();
    const rule = [...scripted, ...usual].find(({ pattern }) => pattern.test(call));
    const body = rule?.answer(request, response, idOf(call));
    if (body !== undefined) response.end(JSON.stringify(body));
  });
  const streams = new Set<Duplex>();
  server.on('upgrade', (request, stream: Duplex) => {
    const container = containers.get(idOf(callOf(request)));
    if (container) container.output = stream;
    streams.add(stream);
    stream.on('error', () => undefined);
    stream.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
  });
  await new Promise<void>((done) => server.listen(socketPath, done));
  return {
    socketPath,
    calls,
    containers,
    on: (pattern, answer) => void scripted.unshift({ pattern, answer }),
    async close() {
      for (const stream of streams) stream.destroy();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

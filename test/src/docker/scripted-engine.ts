import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';

/** How a call is answered: with JSON, or, if it returns undefined, by the function itself, perhaps never. */
export type Answer = (request: IncomingMessage, response: ServerResponse, id: string) => object | undefined;

/** An engine that does what a test says, for faults that a real one cannot be told to have. */
export interface ScriptedEngine {
  socketPath: string;
  /** Calls so far, such as `POST /containers/create`. */
  calls: string[];
  /** Its containers, with what they print by. */
  containers: Map<string, { running: boolean; output?: Duplex }>;
  /** Answers the calls whose method and path match otherwise. */
  on(pattern: RegExp, answer: Answer): void;
  close(): Promise<void>;
}

/** Starts one in a folder of its own; every image is there and has `imageLabels`. */
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

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as OTLP over HTTP has it in JSON, with its attributes as an object. */
export interface CollectedSpan {
  name: string;
  traceId: string;
  spanId: string;
  /** Absent: it begins the trace. */
  parentSpanId?: string;
  /** 2: failed. */
  status: { code: number; message?: string };
  attributes: Record<string, unknown>;
  /** Of its process. */
  resource: Record<string, unknown>;
}

interface AttributeJson {
  key: string;
  value: { arrayValue?: { values: AttributeJson['value'][] } } & Record<string, unknown>;
}
type SpanJson = Omit<CollectedSpan, 'attributes' | 'resource'> & { attributes: AttributeJson[] };
interface ExportJson {
  resourceSpans: { resource: { attributes: AttributeJson[] }; scopeSpans: { spans: SpanJson[] }[] }[];
}

const waitMs = 15_000;

function valueOf({ arrayValue, ...value }: AttributeJson['value']): unknown {
  return arrayValue === undefined ? Object.values(value)[0] : arrayValue.values.map(valueOf);
}

function objectOf(attributes: AttributeJson[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));
}

/** A collector of traces that keeps what it is sent. */
export interface TraceCollector {
  /** Where spans are sent. */
  url: string;
  /** Headers of the last export. */
  headers(): Record<string, unknown>;
  /** Resolves with the spans of a trace once `names` are among their names. */
  trace(traceId: string, names: readonly string[]): Promise<CollectedSpan[]>;
  /** From now on exports are answered with this status, and not kept. */
  refuse(status: number): void;
  close(): Promise<void>;
}

/** Starts a collector on a free port of loopback. */
export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  let [refused, headers]: [number | undefined, Record<string, unknown>] = [undefined, {}];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      headers = request.headers;
      response.writeHead(refused ?? 200, { 'content-type': 'application/json' }).end('{}');
      if (refused !== undefined) return;
      const { resourceSpans } = JSON.parse(Buffer.concat(parts).toString()) as ExportJson;
      for (const { resource, scopeSpans } of resourceSpans)
        for (const span of scopeSpans.flatMap((scope) => scope.spans))
          spans.push({ ...span, attributes: objectOf(span.attributes), resource: objectOf(resource.attributes) });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    headers: () => headers,
    async trace(traceId, names) {
      const untilMs = performance.now() + waitMs;
      for (;;) {
        const found = spans.filter((span) => span.traceId === traceId);
        const known = new Set(found.map(({ name }) => name));
        if (names.every((name) => known.has(name))) return found;
        if (performance.now() > untilMs) throw new Error(`The trace has only ${[...known].join(', ')}.`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    refuse: (status) => void (refused = status),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

// What operators see of a platform with simulated GPUs: traces of invocations, and metrics.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { allMetrics, readExposed } from '../support/all-metrics.js';
import { openwhiskSeries } from '../support/openwhisk-dashboards.js';
import { startTraceCollector } from '../support/trace-collector.js';
import type { CollectedSpan, TraceCollector } from '../support/trace-collector.js';

const caseMs = 60_000;
const flags = [
  '--gpus',
  'sim:rtx3090x2',
  '--stem-cells',
  'false',
  '--set',
  'gpu.policy=least-loaded',
  '--set',
  'userEvents=true',
  '--set',
  'recordTtlHours=24',
];
if (!hasStandIn())
  console.info('No stand-in for a GPU is built here: traces and metrics are not tested on a platform.');

(hasStandIn() ? describe : describe.skip)('a platform that is watched', () => {
  let platform: RunningPlatform;
  let collector: TraceCollector;
  beforeAll(async () => {
    collector = await startTraceCollector();
    const tracing = { url: collector.url, headers: { 'x-key': 'secret' }, serviceName: 'house' };
    platform = await startPlatform({
      flags: [...flags, '--set', `tracing=${JSON.stringify(tracing)}`],
      env: { OTEL_BSP_SCHEDULE_DELAY: '100' },
    });
  }, caseMs);
  afterAll(async () => {
    await platform.stop();
    await collector.close();
  }, caseMs);

  const requestSpan = 'POST /api/v1/namespaces/{namespace}/actions/{actionName}';
  const tells = 'function main() { return { traceparent: process.env.__OW_TRACEPARENT }; }';

  /** Invokes an action as part of a trace of the caller, and returns the result. */
  async function invokeTraced(action: string, traceId: string): Promise<JsonObject> {
    const answer = await fetch(`${platform.url}/api/v1/namespaces/_/actions/${action}?blocking=true&result=true`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(platform.auth).toString('base64')}`,
        traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
      },
    });
    return (await answer.json()) as JsonObject;
  }

  const only = (spans: readonly CollectedSpan[], name: string): CollectedSpan => {
    const found = spans.filter((span) => span.name === name);
    expect(found.map((span) => span.name)).toEqual([name]);
    return found[0] as CollectedSpan;
  };
  /** The span's name and those above it. */
  const pathOf = (spans: readonly CollectedSpan[], { name, parentSpanId }: CollectedSpan): string[] => {
    const parent = spans.find(({ spanId }) => spanId === parentSpanId);
    return [name, ...(parent === undefined ? [parentSpanId ?? 'none'] : pathOf(spans, parent))];
  };

  test(
    "an invocation is one trace from the caller's span to the function, with the decision that placed it",
    async () => {
      const { api } = platform;
      await api.putAction('tells', tells, { annotations: { gpu: { memoryMiB: 1000, mpsPercent: 50 } } });
      const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
      const { traceparent } = await invokeTraced('tells', traceId);
      const spans = await collector.trace(traceId, [requestSpan, 'invoke', 'activation']);
      const top = [requestSpan, '00f067aa0ba902b7'];
      expect(spans.map((span) => pathOf(spans, span)).sort()).toEqual(
        [
          top,
          ['invoke', ...top],
          ['gpu decision', 'invoke', ...top],
          ['bus', 'invoke', ...top],
          ['activation', 'invoke', ...top],
          ...['container wait', 'init', 'run'].map((part) => [part, 'activation', 'invoke', ...top]),
        ].sort(),
      );
      expect(traceparent).toBe(`00-${traceId}-${only(spans, 'run').spanId}-01`);
      expect(only(spans, 'gpu decision').attributes).toMatchObject({
        'gpuwhisk.policy': 'least-loaded',
        'gpuwhisk.decision.reason': expect.any(String),
        'gpuwhisk.decision.rejected': [expect.stringMatching(/^GPU-\S+: /)],
        'gpuwhisk.gpu.devices': [expect.stringMatching(/^GPU-/)],
        'gpuwhisk.gpu.share': 0.5,
      });
      expect(only(spans, 'activation').attributes).toMatchObject({
        'faas.name': '/guest/tells',
        'gpuwhisk.start': 'cold',
        'gpuwhisk.status': 'success',
      });
      const { attributes, resource } = only(spans, requestSpan);
      expect(attributes).toMatchObject({
        'http.response.status_code': 200,
        'url.path': expect.stringMatching(/tells$/),
      });
      expect(resource).toMatchObject({ 'service.name': 'house', 'service.instance.id': 'standalone' });
      expect(collector.headers()).toMatchObject({ 'x-key': 'secret' });
    },
    caseMs,
  );

  test(
    'the actions of a sequence are below it, a failed one is marked, and a warm run loads nothing',
    async () => {
      const { api } = platform;
      await api.putAction('first', tells);
      await api.putAction('bad', 'function main() { return { error: { statusCode: 418 } }; }');
      const components = ['/_/first', '/_/bad'];
      await api.request('PUT', '_/actions/both', { exec: { kind: 'sequence', components } });
      const traceId = 'aaf92f3577b34da6a3ce929d0e0e4736';
      await invokeTraced('first', 'bbf92f3577b34da6a3ce929d0e0e4736');
      await invokeTraced('both', traceId);
      const spans = await collector.trace(traceId, [requestSpan, 'sequence']);
      const top = ['sequence', requestSpan, '00f067aa0ba902b7'];
      const invokes = spans.filter(({ name }) => name === 'invoke');
      expect(invokes.map((span) => pathOf(spans, span).slice(1))).toEqual([top, top]);
      const activations = spans.filter(({ name }) => name === 'activation');
      expect(activations.map(({ status }) => status.code).sort()).toEqual([0, 2]);
      // The first action's container has loaded it.
      expect(spans.filter(({ name }) => name === 'init')).toHaveLength(1);
      expect(only(spans, 'sequence').status).toEqual({ code: 2, message: 'application error' });
    },
    caseMs,
  );

  test(
    'a collector that takes nothing changes no answer, and is counted',
    async () => {
      const { api } = platform;
      collector.refuse(400);
      await api.putAction('first', tells);
      const answers = await Promise.all(Array.from({ length: 20 }, () => api.invokeForResult('first')));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      await until('failed exports are counted', async () => {
        const text = await (await fetch(`${platform.url}/metrics`)).text();
        return /^gpuwhisk_trace_spans_total\{outcome="failed"\} [1-9]/m.test(text);
      });
    },
    caseMs,
  );

  test(
    "/metrics exposes what docs/metrics.md lists, and every series of OpenWhisk's dashboards after traffic",
    async () => {
      const { api } = platform;
      const sloMs = 30_000;
      await api.putAction('tells', tells, { annotations: { gpu: { memoryMiB: 1000, mpsPercent: 50, sloMs } } });
      await api.invoke('tells');
      await api.invoke('bad');
      await api.invoke('first');
      const text = await (await fetch(`${platform.url}/metrics`)).text();
      const exposed = new Map(readExposed(text).map((metric) => [metric.name, metric]));
      const listed = await allMetrics();
      expect([...exposed.keys()].sort()).toEqual(listed.map(({ name }) => name));
      for (const { labels, ...metric } of listed) {
        const found = exposed.get(metric.name);
        expect(found).toMatchObject(metric);
        expect(labels).toEqual(expect.arrayContaining([...(found?.labels ?? [])]));
      }
      const lines = text.split('\n');
      for (const { name, labels } of openwhiskSeries) {
        const line = lines.find((one) => one.startsWith(`${name}{`) || one.startsWith(`${name} `)) ?? name;
        const own = [...line.matchAll(/[{,](\w+)="/g)].map(([, label]) => label).sort();
        expect([name, own, / [0-9.e+-]+$/.test(line)]).toEqual([name, [...labels].sort(), true]);
      }
      expect(text).toMatch(/^gpuwhisk_action_slo_total\{.*action="tells",outcome="met"\} [1-9]/m);
      expect(text).toMatch(/^gpuwhisk_gpu_memory_bytes\{.*kind="total"\} 2576/m);
      expect(text).toMatch(/^gpuwhisk_gpu_health\{.*state="healthy"\} 1$/m);
      expect(text).toMatch(/^gpuwhisk_gpu_sharing_up\{.*\} 1$/m);
    },
    caseMs,
  );
});

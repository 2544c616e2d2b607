import type { Metric } from 'prom-client';
import { showExpiry, showRecords } from '@gpuwhisk/common/activations/record-writer';
import { coldStartMetrics, gpuMetrics, showModules, showNodes } from '@gpuwhisk/common/gpu-metrics';
import { actionMetrics, busMetrics, createMetrics, throttleMetrics, traceMetrics } from '@gpuwhisk/common/metrics';
import type { MetricDescription } from '@gpuwhisk/common/metrics';
import { showStored } from '@gpuwhisk/common/stored-metrics';
import { openUserEvents } from '@gpuwhisk/common/user-events';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { CostLedger } from '@gpuwhisk/controller/gpu/cost/cost-ledger';
import { learningMetrics } from '@gpuwhisk/controller/gpu/learning/learning-metrics';
import { LearnedStarts } from '@gpuwhisk/invoker/activation/learned-starts';
import { showDevices } from '@gpuwhisk/invoker/gpu-agent/device-metrics';
import { PairTemplates } from '@gpuwhisk/invoker/containers/mscontainer/pair-templates';
import { showPool } from '@gpuwhisk/invoker/pool/pool-metrics';
import { Compilations } from '@gpuwhisk/invoker/runtimes/python-compiler';
import { showProcess } from '@gpuwhisk/server/process/process-metrics';

/** What is read only when metrics are collected. */
const unread = {} as never;

/** Every metric that some process exposes, by name. */
export async function allMetrics(): Promise<MetricDescription[]> {
  const { registry } = createMetrics();
  throttleMetrics(registry);
  busMetrics(registry);
  traceMetrics(registry);
  gpuMetrics(registry, { waiting: () => 0, epoch: () => undefined });
  coldStartMetrics(registry);
  showNodes(registry, () => 0);
  showModules(registry, { hashes: [], differ: () => false });
  learningMetrics(registry, unread);
  for (const part of ['controller', 'invoker']) showRecords(registry, part, unread);
  showExpiry(registry, unread);
  showStored(registry, unread);
  new CostLedger({ metrics: { registry } } as never);
  showPool(registry, unread);
  new LearnedStarts(unread, registry, unread);
  new PairTemplates(unread).show(registry);
  showDevices(registry, unread);
  new Compilations().show(registry);
  showProcess(registry);
  const bus = { ensureTopic: () => Promise.resolve(), send: unread };
  await openUserEvents({ bus, clock: systemClock, registry, source: 'controller0' });
  const others = registry.getMetricsAsArray() as unknown as (Metric & MetricFields)[];
  const ofActions = actionMetrics.map(({ name, type, help, labels }) => ({ name, type, help, labels }));
  return [...ofActions, ...others.map(describe)].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Fields that prom-client's metrics have. */
interface MetricFields {
  name: string;
  help: string;
  labelNames: string[];
}

function describe(metric: Metric & MetricFields): MetricDescription {
  const { name, help, labelNames } = metric;
  const type = metric.constructor.name.toLowerCase();
  if (type !== 'counter' && type !== 'gauge' && type !== 'histogram') throw new Error(`${name} is a ${type}`);
  return { name, type, help, labels: labelNames };
}

/** A metric as a server exposes it: its type, its help, and the labels of its samples. */
export interface ExposedMetric extends MetricDescription {
  /** Whether there are samples. */
  hasSamples: boolean;
}

/** Reads the text format. */
export function readExposed(text: string): ExposedMetric[] {
  const all = new Map<string, ExposedMetric>();
  let present: ExposedMetric | undefined;
  for (const line of text.split('\n')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind === 'HELP') all.set(name, (present = { name, type: 'gauge', help: rest, labels: [], hasSamples: false }));
    else if (kind === 'TYPE' && present !== undefined) present.type = rest as MetricDescription['type'];
    else if (line !== '' && present !== undefined) {
      present.hasSamples = true;
      const labels = [...line.matchAll(/[{,](\w+)="(?:[^"\\]|\\.)*"/g)].map(([, label = '']) => label);
      present.labels = [...new Set([...present.labels, ...labels.filter((label) => label !== 'le')])];
    }
  }
  return [...all.values()];
}

import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';

/** Counts what was skipped of what came on a bus. */
export interface BusMetrics {
  /** A message is no JSON object, or not what its topic is for. */
  malformed(topic: string): void;
  /** Messages were gone before they were consumed. */
  lost(topic: string, count: number): void;
}

/** The metrics of a bus in `registry`; those of a registry are the same however often they are asked for. */
export function busMetrics(registry: Registry): BusMetrics {
  const counter = (name: string, help: string): Counter =>
    (registry.getSingleMetric(name) as Counter | undefined) ??
    new Counter({ name, help, labelNames: ['topic'], registers: [registry] });
  const malformed = counter('gpuwhisk_bus_malformed_messages_total', 'Messages that could not be read');
  const lost = counter('gpuwhisk_bus_lost_messages_total', 'Messages that brokers deleted before they were consumed');
  return {
    malformed: (topic) => malformed.inc({ topic }),
    lost: (topic, count) => lost.inc({ topic }, count),
  };
}

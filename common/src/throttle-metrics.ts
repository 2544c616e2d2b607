import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';

/** Namespaces whose refusals are counted apart; those of further ones count as `other`. */
const maxNamespaces = 1000;

/** Counts refusals, under the names that OpenWhisk's user-events service gives them. */
export interface ThrottleMetrics {
  /** Refused for its rate of invocations or fires. */
  timed(namespace: string): void;
  /** Refused for its invocations in flight. */
  concurrent(namespace: string): void;
  /** A completion did not come in time. */
  forcedCompletion(): void;
}

function once(registry: Registry, name: string, help: string, labelNames: string[]): Counter {
  const known = registry.getSingleMetric(name);
  if (known !== undefined) return known as Counter;
  return new Counter({ name, help, labelNames, registers: [registry] });
}

/** The metrics of throttles in `registry`; those of a registry are the same however often they are asked for. */
export function throttleMetrics(registry: Registry): ThrottleMetrics {
  const help = 'Requests that a namespace was refused for its';
  const timed = once(registry, 'openwhisk_action_limit_timed_total', `${help} limit a minute`, ['namespace']);
  const concurrent = once(registry, 'openwhisk_action_limit_concurrent_total', `${help} limit in flight`, [
    'namespace',
  ]);
  const forced = once(registry, 'gpuwhisk_forced_completions_total', 'Activations whose completion was lost', []);
  const namespaces = new Set<string>();
  const label = (namespace: string): { namespace: string } => {
    if (namespaces.size < maxNamespaces) namespaces.add(namespace);
    return { namespace: namespaces.has(namespace) ? namespace : 'other' };
  };
  return {
    timed: (namespace) => timed.inc(label(namespace)),
    concurrent: (namespace) => concurrent.inc(label(namespace)),
    forcedCompletion: () => forced.inc(),
  };
}

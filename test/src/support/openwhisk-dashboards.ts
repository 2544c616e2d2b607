// The series that OpenWhisk's three Grafana dashboards read (apache/openwhisk, core/monitoring/user-events/compose/grafana/
// dashboards: global-metrics, openwhisk_events, top-namespaces): facts about them, not the dashboards themselves.
import type { Selector } from './promql.js';

const action = ['namespace', 'initiator', 'action'];

/** Labels that are no metric's own: the scrape configuration gives them to all of a target. */
export const targetLabels: ReadonlySet<string> = new Set(['region', 'stack', 'job', 'instance', 'host']);

/** Series with all labels that some dashboard matches or groups by, target labels left out. */
export const openwhiskSeries: readonly Selector[] = [
  { name: 'openwhisk_action_activations_total', labels: [...action, 'kind', 'memory'] },
  { name: 'openwhisk_action_status', labels: [...action, 'status'] },
  // The dashboard also matches this one's `status`, which neither OpenWhisk nor we give it, as not `success`.
  { name: 'openwhisk_action_status_code', labels: [...action, 'status_code'] },
  { name: 'openwhisk_action_coldStarts_total', labels: action },
  { name: 'openwhisk_action_memory', labels: action },
  ...['duration_seconds', 'waitTime_seconds', 'initTime_seconds', 'response_size_bytes'].flatMap((name) => [
    { name: `openwhisk_action_${name}_sum`, labels: action },
    { name: `openwhisk_action_${name}_count`, labels: action },
  ]),
  { name: 'counter_invoker_containerStart_counter_total', labels: [...action, 'containerState'] },
  { name: 'counter_containerPool_prewarmExpired_counter_total', labels: ['kind', 'memory'] },
  { name: 'counter_containerPool_prewarmColdstart_counter_total', labels: ['kind', 'memory'] },
  { name: 'gauge_containerPool_prewarmCount_counter', labels: [] },
  { name: 'gauge_containerPool_activeCount_counter', labels: [] },
];

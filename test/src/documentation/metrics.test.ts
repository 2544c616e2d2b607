// docs/metrics.md, OpenWhisk's dashboards, our dashboards and our alerts against the metrics that the code has.
// METRICS_UPDATE=1 writes the page's table. OPENWHISK_DASHBOARDS names a folder with OpenWhisk's dashboards.
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import type { MetricDescription } from '@gpuwhisk/common/metrics';
import { allMetrics } from '../support/all-metrics.js';
import { openwhiskSeries, targetLabels } from '../support/openwhisk-dashboards.js';
import { expressionsIn, metricOf, seriesIn } from '../support/promql.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const page = join(root, 'docs/metrics.md');
const table = /(?<=^<!-- metrics -->\n)[^]*?(?=^<!-- end of metrics -->$)/m;
const monitoring = join(root, 'ansible/roles/monitoring/files');
const metrics = await allMetrics();
const known = new Map(metrics.map((metric) => [metric.name, metric]));
const names = new Set(known.keys());

interface AlertRule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook: string };
}

/** Series, or labels of a series, of an expression that the code does not have. */
function unknownIn(expression: string): string[] {
  return seriesIn(expression).flatMap(({ name, labels }) => {
    if (name === 'up') return [];
    const metric = known.get(metricOf(name, names));
    if (metric === undefined) return [name];
    const own = new Set([...metric.labels, ...targetLabels, 'le']);
    return labels.filter((label) => !own.has(label)).map((label) => `${name}{${label}}`);
  });
}

function rows(all: readonly MetricDescription[]): string {
  const lines = all.map(({ name, type, labels, help }) => {
    const cells = [`\`${name}\``, type, labels.map((label) => `\`${label}\``).join(', '), help];
    return `| ${cells.join(' | ')} |`.replace('|  |', '| |');
  });
  return ['| metric | type | labels | value |', '| --- | --- | --- | --- |', ...lines].join('\n');
}

test('the page lists every metric of the code', async () => {
  const text = await readFile(page, 'utf8');
  const isOurs = ({ name }: MetricDescription): boolean => name.startsWith('gpuwhisk_');
  const wanted = [
    '\n## Names of OpenWhisk and Prometheus\n',
    rows(metrics.filter((metric) => !isOurs(metric))),
    '\n## Our names\n',
    rows(metrics.filter(isOurs)),
    '\n',
  ].join('\n');
  if (process.env.METRICS_UPDATE === '1')
    await writeFile(
      page,
      text.replace(table, () => wanted),
    );
  expect((await readFile(page, 'utf8')).match(table)?.[0]).toBe(wanted);
});

test("every series that OpenWhisk's dashboards read exists, with its labels", async () => {
  for (const { name, labels } of openwhiskSeries) {
    expect(known.get(metricOf(name, names))?.labels).toEqual(expect.arrayContaining(labels));
  }
  const folder = process.env.OPENWHISK_DASHBOARDS;
  if (folder === undefined) return;
  const listed = new Map(openwhiskSeries.map(({ name, labels }) => [name, labels]));
  const read = new Map<string, Set<string>>();
  for (const file of (await readdir(folder)).filter((one) => one.endsWith('.json'))) {
    for (const expression of expressionsIn(JSON.parse(await readFile(join(folder, file), 'utf8'))))
      for (const { name, labels } of seriesIn(expression)) {
        const all = read.get(name) ?? new Set<string>();
        for (const label of labels) if (!targetLabels.has(label)) all.add(label);
        read.set(name, all);
      }
  }
  read.get('openwhisk_action_status_code')?.delete('status');
  const sorted = (labels: Iterable<string>): string[] => [...labels].sort();
  expect([...read].map(([name, labels]) => [name, sorted(labels)]).sort()).toEqual(
    [...listed].map(([name, labels]) => [name, sorted(labels)]).sort(),
  );
});

test.each(['cluster', 'gpus', 'functions'])('our dashboard %s reads series that exist', async (name) => {
  const dashboard: unknown = JSON.parse(await readFile(join(monitoring, `gpuwhisk-${name}.json`), 'utf8'));
  const expressions = expressionsIn(dashboard);
  expect(expressions.length).toBeGreaterThan(10);
  expect(expressions.flatMap(unknownIn)).toEqual([]);
  const role = await readFile(join(monitoring, '../tasks/main.yml'), 'utf8');
  expect(role).toContain(`gpuwhisk-${name}`);
});

test('our alerts read series that exist, and each has a section of the runbook that says where to look and what to do', async () => {
  const { groups } = parse(await readFile(join(monitoring, 'gpuwhisk-alerts.yml'), 'utf8')) as {
    groups: { rules: AlertRule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.flatMap(({ expr }) => unknownIn(expr))).toEqual([]);
  expect(rules.filter(({ expr }) => seriesIn(expr).length === 0)).toEqual([]);
  const runbook = await readFile(join(root, 'docs/runbook.md'), 'utf8');
  const sections = [...runbook.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
  expect(sections).toEqual(rules.map(({ alert }) => alert));
  for (const { alert, annotations, labels } of rules) {
    expect(annotations.runbook).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
    expect(['warning', 'critical']).toContain(labels.severity);
    expect(annotations.summary).toMatch(/\w/);
  }
});

test.each([
  [
    'sum(rate(a_total{x="1", y=~"b|c"}[5m])) by (z) / b_total',
    [
      ['a_total', 'x', 'y', 'z'],
      ['b_total', 'z'],
    ],
  ],
  ['topk(10, sum by(k)(increase(a[${__range_s}s])))', [['a', 'k']]],
  ['query_result(sum(increase(a{n=~"$n"}[$__range])) by (r) > 0)', [['a', 'n', 'r']]],
  ['label_values(a{n="1"}, m)', [['a', 'n', 'm']]],
  ['a > 0 unless a offset 10m', [['a'], ['a']]],
])('the series of %s', (expression, wanted) => {
  expect(seriesIn(expression).map(({ name, labels }) => [name, ...labels])).toEqual(wanted);
});

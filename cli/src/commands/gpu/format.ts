import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';

/** Rows under a header, each column as wide as its widest text; columns of `right` are flush right. */
export function table(
  header: string[],
  rows: string[][],
  right: readonly string[] = [],
): { header: string; rows: string[] } {
  const widths = header.map((title, at) => Math.max(title.length, ...rows.map((row) => (row[at] ?? '').length)));
  const line = (cells: string[]): string =>
    cells
      .map((cell, at) =>
        right.includes(header[at] ?? '') ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return { header: `${line(header)}\n`, rows: rows.map((row) => `${line(row)}\n`) };
}

/** `0.25` → `25%`; `-` if the fraction is unknown. */
export function percent(fraction: Json | undefined): string {
  return fraction === undefined ? '-' : `${Math.round(asNumber(fraction) * 100)}%`;
}

/** Titles of a workload's progress. */
export const progressTitles = ['Baseline', 'Now', 'Degradation', 'Bound'];

/**
 * A workload's rate alone and now, its degradation, and the bound of that. `*` marks a measured baseline, `~` an
 * estimated degradation.
 */
export function progressCells(workload: JsonMap): string[] {
  const rate = (field: string): string =>
    workload.has(field) ? String(Number(asNumber(workload.get(field)).toPrecision(4))) : '-';
  const isMeasured = workload.get('baselineFrom') === 'measured';
  return [
    `${rate('baselineRate')}${isMeasured ? '*' : ''}`,
    rate('rate'),
    workload.has('estimatedDegradation')
      ? `~${percent(workload.get('estimatedDegradation'))}`
      : percent(workload.get('degradation')),
    percent(workload.get('maxDegradation')),
  ];
}

/** The state of a workload; `unattested` if its bound does not count. */
export function stateOf(workload: JsonMap): string {
  return workload.get('attested') === false ? 'unattested' : asText(workload.get('state'));
}

/** A column of the lists of devices. */
interface Column {
  title: string;
  right?: boolean;
  of(device: JsonMap): string;
}

const columns: Column[] = [
  { title: 'GPU', of: (device) => asText(device.get('uuid')) },
  { title: 'Invoker', of: (device) => asText(device.get('invoker')) },
  {
    title: 'Type',
    of: (device) => `${asText(device.get('type'))}${device.get('simulated') === true ? ' (simulated)' : ''}`,
  },
  { title: 'Mode', of: (device) => asText(device.get('mode')) },
  { title: 'State', of: (device) => asText(asMap(device.get('health')).get('state')) },
  { title: 'SMs', right: true, of: (device) => asText(device.get('smCount')) },
  { title: 'Busy', right: true, of: (device) => percent(device.get('utilisation')) },
  {
    title: 'Used MiB',
    right: true,
    of: (device) => (device.has('usedMemoryMiB') ? asText(device.get('usedMemoryMiB')) : '-'),
  },
  { title: 'MiB', right: true, of: (device) => asText(device.get('memoryMiB')) },
  { title: 'Functions', right: true, of: (device) => String(asList(device.get('functions')).length) },
];

/** State of a device whose launches kernel tokens count. */
const tokenColumn: Column = { title: 'Tokens', of: (device) => asText(device.get('tokenState')) || '-' };

/** Optional columns of `wsk gpu top`. */
export interface Shown {
  /** The progress of workloads. */
  progress: boolean;
  /** The state of kernel tokens, and each function's request, limit and budget. */
  tokens: boolean;
}

/** A line for each device, under a header. */
export function deviceTable(devices: JsonMap[], { tokens }: Pick<Shown, 'tokens'>): ReturnType<typeof table> {
  const all = tokens ? [...columns, tokenColumn] : columns;
  return table(
    all.map(({ title }) => title),
    devices.map((device) => all.map((column) => column.of(device))),
    all.filter(({ right }) => right).map(({ title }) => title),
  );
}

const tokenTitles = ['Request', 'Limit', 'Budget'];

/** Fractions of the SMs that a function has on demand, at most, and in this period; `all`: its launches never wait. */
function tokenCells(one: JsonMap): string[] {
  const launches = one.has('launches') ? asMap(one.get('launches')) : undefined;
  const budget = launches?.has('budget') === true ? percent(launches.get('budget')) : 'all';
  return [percent(one.get('smRequest')), percent(one.get('smLimit')), launches === undefined ? '-' : budget];
}

/** Titles of `processRows`. */
export function processTitles({ progress, tokens }: Shown): { titles: string[]; right: string[] } {
  const shares = ['Share', ...(tokens ? tokenTitles : [])];
  const figures = [...shares, 'MiB', 'Holds', 'Running', ...(progress ? progressTitles : [])];
  return { titles: ['Function', ...figures, ''], right: figures };
}

/** A training job with its progress: `job 0a1b, run 2, 120 steps, 11.5/s`. */
function trainingText(training: JsonMap): string {
  const parts = [`job ${asText(training.get('job'))}, run ${asNumber(training.get('attempt'))}`];
  if (training.has('steps')) parts.push(`${asNumber(training.get('steps'))} steps`);
  if (training.has('rate')) parts.push(`${Number(asNumber(training.get('rate')).toPrecision(4))}/s`);
  if (training.get('stalled') === true) parts.push('stalled');
  return parts.join(', ');
}

/** A line for each process of a device: functions, then workloads. */
export function processRows(device: JsonMap, { progress, tokens }: Shown): string[][] {
  const none = progress ? progressTitles.map(() => '') : [];
  const functions = asList(device.get('functions'))
    .map(asMap)
    .map((one) => [
      one.has('action') ? asText(one.get('action')) : one.has('container') ? '(pre-warmer)' : '(of others)',
      percent(one.get('share')),
      ...(tokens ? tokenCells(one) : []),
      asText(one.get('memoryMiB')),
      one.has('heldMiB') ? asText(one.get('heldMiB')) : '-',
      String(asNumber(one.get('running'))),
      ...none,
      [
        asText(one.get('slice')),
        one.has('training') ? trainingText(asMap(one.get('training'))) : '',
        ...asList(one.get('sets')).map((set) => asText(asMap(set).get('text'))),
      ]
        .filter(Boolean)
        .join(', '),
    ]);
  const workloads = asList(device.get('workloads'))
    .map(asMap)
    .map((one) => [
      `${asText(one.get('name'))} (${asText(one.get('origin'))})`,
      '-',
      ...(tokens ? tokenTitles.map(() => '-') : []),
      one.has('memoryMiB') ? asText(one.get('memoryMiB')) : '-',
      '-',
      '-',
      ...(progress ? progressCells(one) : []),
      [one.has('pid') ? `process ${asText(one.get('pid'))}` : '', stateOf(one)].filter(Boolean).join(', '),
    ]);
  return [...functions, ...workloads];
}

// Measurements by which GPUs are shared: profiles of functions, and quotas of sets of functions that run together.
import { checkArgs, type CommandContext } from '../../command.js';
import { wrapError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { percent, table } from './format.js';

/** A number of milliseconds, or `-` if it is unknown. */
const ms = (value: Json | undefined): string => (value === undefined ? '-' : asNumber(value).toFixed(1));
const times = (value: Json | undefined): string => (value === undefined ? '-' : asNumber(value).toFixed(2));
const placeOf = (one: JsonMap): string => `${asText(one.get('gpuType'))}/${asText(one.get('mode'))}`;

/** Deletes one row by its id, or lists all rows in a table. */
async function listOrForget(
  { args, flags, client }: CommandContext,
  route: 'functions' | 'quotas',
  show: (all: JsonMap[]) => void,
): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  const forgotten = flags.given('forget') ? flags.text('forget') : undefined;
  try {
    if (forgotten === undefined) show(asList(await client.callRoute('GET', `gpu/${route}`)).map(asMap));
    else await client.callRoute('DELETE', `gpu/${route}/${encodeURIComponent(forgotten)}`);
  } catch (error) {
    const what = forgotten === undefined ? 'obtain what was learned' : `forget '${forgotten}'`;
    throw wrapError(error, `Unable to ${what}`);
  }
  if (forgotten !== undefined) stdout.print(`${stdout.ok} forgot ${forgotten}\n`);
}

const functionTitles = [
  'Function',
  'Version',
  'GPU',
  'Batch',
  'Input',
  'Alone ms',
  'Start ms',
  'Runs',
  'Slowdown',
  'Predicted',
  'SMs',
  'Told by',
  'DRAM',
  'Holds',
];

/** The largest size of the inputs: bytes of the parameters, or the number that the function reports. `-` if it is not known. */
function inputsOf(batch: JsonMap): string {
  if (!batch.has('inputs')) return '-';
  const inputs = asMap(batch.get('inputs'));
  const upTo = asNumber(inputs.get('upTo'));
  return asText(inputs.get('unit')) === 'bytes' ? `≤ ${upTo} B` : `≤ ${upTo}`;
}

/** What is told of a function whose version runs alone. */
function aloneLine(one: JsonMap): string[] {
  if (!one.has('alone')) return [];
  const alone = asMap(one.get('alone'));
  const until = new Date(asNumber(alone.get('until'))).toISOString().slice(0, 16);
  const why =
    asText(alone.get('state')) === 'faulting'
      ? `until ${until}Z: a fault of it ended the runs of all functions on its MPS server`
      : `until five runs have succeeded: it was one of several that a fault on their MPS server ended`;
  return [`${asText(one.get('function'))} ${asText(one.get('version'))} runs alone ${why}\n`];
}

/** `wsk gpu functions`. */
export function listFunctions(context: CommandContext): Promise<void> {
  return listOrForget(context, 'functions', (all) => {
    const rows = all.flatMap((one) => {
      const features = one.has('features') ? asMap(one.get('features')) : undefined;
      const toldBy = one.has('fillSource') ? asText(one.get('fillSource')) : '-';
      const seen = [percent(features?.get('smUtil')), toldBy, percent(features?.get('dramUtil'))];
      const holds = one.has('heldMiB') ? asText(one.get('heldMiB')) : '-';
      const known = [asText(one.get('function')), asText(one.get('version')) || '-', placeOf(one)];
      const batches = asList(one.get('batches')).map(asMap);
      if (batches.length === 0) return [[...known, '-', '-', '-', '-', '0', '-', '-', ...seen, holds]];
      return batches.map((batch) => {
        const runs = String(asNumber(batch.get('runs')));
        const alone = `${ms(batch.get('soloMs'))}${batch.get('measured') === true ? '' : '*'}`;
        const slowdown = batch.has('slowdown') ? asMap(batch.get('slowdown')) : undefined;
        const beside = [times(slowdown?.get('measured')), times(slowdown?.get('predicted'))];
        const of = [asText(batch.get('batch')), inputsOf(batch)];
        return [...known, ...of, alone, ms(batch.get('startMs')), runs, ...beside, ...seen, holds];
      });
    });
    const { header, rows: lines } = table(functionTitles, rows, functionTitles.slice(3));
    stdout.print(stdout.bold(header) + lines.join('') + [...new Set(all.flatMap(aloneLine))].join(''));
  });
}

/** The state of the search, and the reason if it has not ended. */
function searchOf(one: JsonMap): string {
  const search = asMap(one.get('search'));
  const problems = asList(one.get('jobs'))
    .map(asMap)
    .filter((job) => job.has('problem'))
    .map((job) => `${asText(job.get('function'))}: ${asText(job.get('problem'))}`);
  const why = search.has('reason') ? [asText(search.get('reason'))] : problems;
  const stage = asText(search.get('stage'));
  return why.length === 0 ? stage : `${stage} (${why.join('; ')})`;
}

const quotaTitles = ['GPU', 'Functions', 'Shares', 'Slowdowns', 'Points', 'Measurements', 'Search', 'Id'];

/** `wsk gpu quotas`. */
export function listQuotas(context: CommandContext): Promise<void> {
  return listOrForget(context, 'quotas', (all) => {
    const rows = all.map((one) => {
      const points = asList(one.get('points')).map(asMap);
      const [best] = points;
      const numbers = (name: string): number[] => asList(best?.get(name) ?? []).map(asNumber);
      const measured = points.reduce((total, point) => total + asNumber(point.get('measurements')), 0);
      return [
        placeOf(one),
        asList(one.get('jobs'))
          .map((job) => asText(asMap(job).get('function')))
          .join(' '),
        numbers('shares')
          .map((share) => `${share}%`)
          .join(' ') || '-',
        numbers('slowdowns')
          .map((slowdown) => slowdown.toFixed(2))
          .join(' ') || '-',
        String(points.length),
        String(measured),
        searchOf(one),
        asText(one.get('id') ?? '-'),
      ];
    });
    const { header, rows: lines } = table(quotaTitles, rows, ['Points', 'Measurements']);
    stdout.print(stdout.bold(header) + lines.join(''));
  });
}

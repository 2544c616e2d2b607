// Profiles of functions: trials at share classes, and the request and limit found by them.
import { setTimeout as sleep } from 'node:timers/promises';
import { checkArgs, type CommandContext } from '../../command.js';
import { argumentError, wrapError } from '../../errors.js';
import { writeNewFile } from '../../files.js';
import { asList, asMap, asNumber, asText, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { table } from './format.js';
import { trialsPlot, type PlottedTrial } from './trials-plot.js';

const refreshMs = 1000;
const barWidth = 20;

/** `wsk gpu profile`: begins a function's trials if needed, and shows them; on a terminal until they have ended. */
export async function profile({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An action name is required.');
  const [name = ''] = args;
  const call = async (method: 'GET' | 'POST' | 'DELETE'): Promise<JsonMap> => {
    try {
      return asMap(await client.callRoute(method, `gpu/functions/${encodeURIComponent(name)}/profile`));
    } catch (error) {
      const verb = { GET: 'obtain', POST: 'begin', DELETE: 'cancel' }[method];
      throw wrapError(error, `Unable to ${verb} the profile of '${name}'`);
    }
  };
  if (flags.bool('cancel')) {
    const shown = await call('DELETE');
    const hasEnded = ['none', 'done'].includes(stateOf(shown));
    stdout.print(
      `${stdout.ok} ${asText(shown.get('action'))} ${hasEnded ? 'has no trials to cancel' : 'is not profiled any more'}\n`,
    );
    return;
  }
  let shown = await call('GET');
  const isNeeded = ['none', 'cancelled'].includes(stateOf(shown)) || kindsOf(shown).some((kind) => kind.has('failed'));
  if (isNeeded) shown = await call('POST');
  shown = await untilEnded(shown, () => call('GET'));
  stdout.print(picture(shown));
  if (flags.given('svg')) savePlot(flags.text('svg'), shown);
}

const stateOf = (shown: JsonMap): string => asText(shown.get('state'));
const kindsOf = (shown: JsonMap): JsonMap[] => asList(shown.get('kinds')).map(asMap);
const trialsOf = (kind: JsonMap): JsonMap[] => asList(kind.get('trials')).map(asMap);
const placeOf = (kind: JsonMap): string => `${asText(kind.get('gpuType'))}/${asText(kind.get('mode'))}`;
const isPending = (shown: JsonMap): boolean => ['waiting', 'running'].includes(stateOf(shown));

/** On a terminal, shows the progress until the trials have ended. An interrupt ends the display, not the trials. */
async function untilEnded(first: JsonMap, read: () => Promise<JsonMap>): Promise<JsonMap> {
  let shown = first;
  if (process.stdout.isTTY !== true || !isPending(shown)) return shown;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stdout.print('\n');
      process.exit(0);
    });
  }
  while (isPending(shown)) {
    const text = kindsOf(shown).map((kind) => `${placeOf(kind)} ${progress(kind)}`);
    stdout.print(`\r\u001b[K${stateOf(shown)}  ${text.join('  ')}`);
    await sleep(refreshMs);
    shown = await read();
  }
  stdout.print('\r\u001b[K');
  return shown;
}

function progress(kind: JsonMap): string {
  const [count, most] = [trialsOf(kind).length, asNumber(kind.get('mostTrials'))];
  const isOver = kind.has('profile') || kind.has('failed');
  const filled = isOver ? barWidth : Math.round((barWidth * count) / Math.max(count, most));
  const bar = '#'.repeat(filled) + '.'.repeat(barWidth - filled);
  return `[${bar}] ${isOver ? `${count} ${count === 1 ? 'trial' : 'trials'}` : `${count} of at most ${most} trials`}`;
}

function picture(shown: JsonMap): string {
  const problem = shown.has('problem') ? `: ${asText(shown.get('problem'))}` : '';
  const summary = ['action', 'version', 'state'].map((field) => asText(shown.get(field))).filter(Boolean);
  const head = stdout.bold(`${summary.join(' ')}${problem}\n`);
  const hint = stateOf(shown) === 'waiting' ? 'Trials run while a GPU is idle; the same command shows them.\n' : '';
  return head + kindsOf(shown).map(kindPicture).join('') + hint;
}

/** The measured surface of a kind of GPU: times in ms by batch and share. */
function kindPicture(kind: JsonMap): string {
  const trials = trialsOf(kind);
  const distinct = (field: string): number[] =>
    [...new Set(trials.map((trial) => asNumber(trial.get(field))))].sort((one, other) => one - other);
  const shares = distinct('share');
  const rows = distinct('batch').map((batch) => [String(batch), ...shares.map((share) => cell(trials, batch, share))]);
  const titles = ['Batch', ...shares.map((share) => `${share}%`)];
  const { header, rows: lines } = table(titles, rows, titles);
  const surface = trials.length === 0 ? '' : stdout.bold(header) + lines.join('');
  return `${placeOf(kind)}  ${progress(kind)}\n${surface}${resultOf(kind)}`;
}

function cell(trials: readonly JsonMap[], batch: number, share: number): string {
  const trial = trials.findLast((one) => asNumber(one.get('batch')) === batch && asNumber(one.get('share')) === share);
  if (trial === undefined) return '';
  if (trial.has('ms')) return `${asNumber(trial.get('ms')).toFixed(1)} ms`;
  return trial.get('isOverlong') === true ? 'too long' : 'failed';
}

function resultOf(kind: JsonMap): string {
  if (kind.has('failed')) return `no profile: ${asText(kind.get('failed'))}\n`;
  if (!kind.has('profile')) return '';
  const found = asMap(kind.get('profile'));
  const percent = (field: string): string => `${asNumber(found.get(field)) / 10} %`;
  const goal = found.get('keepsGoal') === true ? '' : ', which does not keep the SLO';
  const memory = found.has('memoryMiB') ? `, ${asText(found.get('memoryMiB'))} MiB` : '';
  const shares = `request ${percent('request')}, limit ${percent('limit')}, batch ${asText(found.get('batch'))}${memory}${goal}`;
  return `${shares}\n${asText(found.get('reason'))}\n`;
}

function savePlot(file: string, shown: JsonMap): void {
  const series = kindsOf(shown).map((kind) => {
    const found = kind.has('profile') ? asMap(kind.get('profile')) : undefined;
    const trials = trialsOf(kind).filter((trial) => trial.has('ms'));
    return {
      title: placeOf(kind),
      trials: trials.map((trial): PlottedTrial => ({
        batch: asNumber(trial.get('batch')),
        share: asNumber(trial.get('share')),
        ms: asNumber(trial.get('ms')),
      })),
      ...(found && { request: asNumber(found.get('request')) / 10, limit: asNumber(found.get('limit')) / 10 }),
    };
  });
  const plotted = series.filter(({ trials }) => trials.length > 0);
  if (plotted.length === 0) throw argumentError('There is no trial to plot yet.');
  writeNewFile(file, Buffer.from(trialsPlot(asText(shown.get('action')), plotted)));
  stdout.print(`${stdout.ok} saved the plot in ${file}\n`);
}

// The GPU policy: shown, changed, and replayed against another one.
import { checkArgs, type CommandContext } from '../../command.js';
import { argumentError, messageOf, wrapError } from '../../errors.js';
import { readTextFile } from '../../files.js';
import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { parseJson } from '../../json/parse.js';
import { stdout } from '../../terminal.js';
import { table } from './format.js';

/** `wsk gpu policy`, and `wsk gpu policy try NAME`, `set NAME` and `reset`. */
export function policy(context: CommandContext): Promise<void> {
  const [verb, ...args] = context.args;
  switch (verb) {
    case undefined:
      return showPolicy(context);
    case 'try':
      return tryPolicy({ ...context, args });
    case 'set':
      return setPolicy({ ...context, args });
    case 'reset':
      return resetPolicy({ ...context, args });
    default:
      throw argumentError("Invalid argument(s). 'try' or 'set' and a policy, 'reset', or nothing is required.");
  }
}

async function setPolicy({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'The name of a policy is required.');
  const body: JsonMap = new Map([['policy', choiceOf(args[0] ?? '')]]);
  let change: JsonMap;
  try {
    change = asMap(await client.callRoute('PUT', 'gpu/policy', body));
  } catch (error) {
    throw wrapError(error, 'Unable to set the policy');
  }
  printChange(change);
}

async function resetPolicy({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let change: JsonMap;
  try {
    change = asMap(await client.callRoute('DELETE', 'gpu/policy'));
  } catch (error) {
    throw wrapError(error, 'Unable to reset the policy');
  }
  printChange(change);
}

function printChange(change: JsonMap): void {
  stdout.print(
    `${stdout.ok} policy ${asText(change.get('to'))} is in force, in place of ${asText(change.get('from'))}\n`,
  );
}

/** The JSON object that the text is, or else the text as a name. */
function choiceOf(text: string): Json {
  if (!text.startsWith('{')) return text;
  try {
    return parseJson(text, { whole: true });
  } catch {
    throw argumentError(`Invalid argument(s). '${text}' is no JSON object.`);
  }
}

function arrivalsIn(file: string): Json {
  const text = readTextFile(file);
  try {
    return parseJson(text, { whole: true });
  } catch (error) {
    throw argumentError(`Unable to read the arrivals in '${file}': ${messageOf(error)}`);
  }
}

async function tryPolicy({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'The name of a policy is required.');
  const body: JsonMap = new Map([['policy', choiceOf(args[0] ?? '')]]);
  if (flags.given('minutes')) body.set('minutes', flags.int('minutes'));
  if (flags.given('arrivals')) body.set('arrivals', arrivalsIn(flags.text('arrivals')));
  let trial: JsonMap;
  try {
    trial = asMap(await client.callRoute('POST', 'gpu/policy/trials', body));
  } catch (error) {
    throw wrapError(error, 'Unable to try the policy');
  }
  const results = asList(trial.get('results')).map(asMap);
  const row = (title: string, cell: (one: JsonMap) => string): string[] => [title, ...results.map(cell)];
  const number = (field: string, digits: number) => (one: JsonMap) => asNumber(one.get(field)).toFixed(digits);
  const rows = [
    row('mean wait, ms', number('meanWaitMs', 1)),
    row('P99 wait, ms', number('p99WaitMs', 1)),
    row('mean time, ms', number('meanMs', 1)),
    row('SLO missed', (one) => `${asNumber(one.get('missed'))} of ${asNumber(one.get('withSlo'))}`),
    row('refused', number('refused', 0)),
    row('stopped', number('stopped', 0)),
    row('GPU hours', number('gpuHours', 4)),
  ];
  const titles = ['', ...results.map((one) => asText(one.get('policy')))];
  const { header, rows: lines } = table(titles, rows, titles.slice(1));
  const left = asNumber(trial.get('leftOut'));
  const leftOut = left === 0 ? '' : `; ${left} more left out, never measured or of several GPUs`;
  stdout.print(`${asNumber(trial.get('arrivals'))} arrivals on ${asNumber(trial.get('gpus'))} GPUs${leftOut}\n`);
  stdout.print(stdout.bold(header) + lines.join(''));
  for (const one of results.filter((result) => result.has('problem'))) {
    stdout.print(`${asText(one.get('policy'))} did not end: ${asText(one.get('problem'))}\n`);
  }
  stdout.print('Runs take what was learned of them, which favours policies that predict by the same.\n');
}

async function showPolicy({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let inForce: JsonMap;
  try {
    inForce = asMap(await client.callRoute('GET', 'gpu/policy'));
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the policy');
  }
  const decides = inForce.get('decides') === true ? '' : ' (another controller decides now)';
  line('policy', asText(inForce.get('policy')) + decides);
  showSetting(inForce);
  line('admission', asText(inForce.get('admission')));
  const settings = asMap(inForce.get('settings'));
  for (const [stage, name] of asMap(inForce.get('stages'))) {
    const own = [...asMap(settings.get(stage))].map(([setting, value]) => `${setting}=${asText(value)}`);
    line(stage, asText(name) + (own.length === 0 ? '' : `  ${own.join(' ')}`));
  }
  for (const one of asList(inForce.get('inert') ?? []).map(asMap)) line('inert', inertText(one));
  const sets = asNumber(inForce.get('sharedSets'));
  line('learned', `${asNumber(inForce.get('functions'))} functions, shares of ${sets} sets`);
  if (inForce.has('shareChoices')) line('shares', choicesText(asMap(inForce.get('shareChoices'))));
  for (const model of asList(inForce.get('models')).map(asMap)) line('predictor', modelText(model));
  if (inForce.has('geometry')) showGeometry(asMap(inForce.get('geometry')));
  for (const change of asList(inForce.get('changes') ?? [])
    .map(asMap)
    .slice(0, changesShown)) {
    const by = asText(change.get('by'));
    line('change', `${timeOf(change)} by ${by}: ${asText(change.get('from'))} to ${asText(change.get('to'))}`);
  }
}

/** How the policy came to differ from the configured one, and what the platform has undone. */
function showSetting(inForce: JsonMap): void {
  if (inForce.has('set')) {
    const set = asMap(inForce.get('set'));
    const by = set.has('by') ? ` by ${asText(set.get('by'))}` : '';
    line('set', `${timeOf(set)}${by}; configured is ${asText(inForce.get('configured'))} (wsk gpu policy reset)`);
  }
  if (inForce.has('undone')) {
    const undone = asMap(inForce.get('undone'));
    line('undone', `${timeOf(undone)} ${asText(undone.get('policy'))}: ${asText(undone.get('why'))}`);
  }
  if (inForce.has('problem')) line('problem', `the policy that was set is not used: ${asText(inForce.get('problem'))}`);
}

const timeOf = (one: JsonMap): string => new Date(asNumber(one.get('at'))).toISOString();

/** A part of the policy without effect, why, and what mends it. */
function inertText(one: JsonMap): string {
  const [stage, part, why, mend] = ['stage', 'part', 'why', 'mend'].map((field) => asText(one.get(field)));
  return `${stage} ${part}: ${why}; ${mend}`;
}

const [cutsShown, changesShown] = [3, 5];

/** Targets by type of device, what devices lack of them, and the last cuts. */
function showGeometry(geometry: JsonMap): void {
  const slices = (profiles: Json | undefined): string =>
    asList(profiles ?? [])
      .map(asText)
      .join(', ') || 'whole';
  for (const target of asList(geometry.get('targets')).map(asMap)) {
    const wanted = target.has('profiles') ? slices(target.get('profiles')) : 'no change';
    const left = target.has('leftWhole') ? `; whole devices stay: ${asText(target.get('leftWhole'))}` : '';
    line('slices', `${asText(target.get('type'))}: ${wanted} wanted: ${asText(target.get('reason'))}${left}`);
  }
  for (const device of asList(geometry.get('devices')).map(asMap)) {
    const windows = asNumber(device.get('mismatches'));
    const into = device.has('cutInto') ? `, is being cut into ${slices(device.get('cutInto'))}` : '';
    const differs = windows === 0 ? '' : `, differs for ${windows} window${windows === 1 ? '' : 's'}`;
    const left = device.has('left') ? `, is left: ${asText(device.get('left'))}` : '';
    line('device', `${asText(device.get('device'))}: ${slices(device.get('profiles'))}${into || differs}${left}`);
  }
  for (const cut of asList(geometry.get('cuts')).map(asMap).slice(0, cutsShown)) {
    const at = new Date(asNumber(cut.get('at'))).toISOString();
    line('cut', `${at} ${asText(cut.get('device'))} into ${slices(cut.get('profiles'))}: ${asText(cut.get('reason'))}`);
  }
}

/** Choices of shares by the answer of the table of measured sets, and the time that the answers saved. */
function choicesText(choices: JsonMap): string {
  const titles: readonly [string, string][] = [
    ['hit', 'by measurements of the set'],
    ['near', 'by a similar set'],
    ['miss', 'by prediction'],
  ];
  const counts = titles.map(([answer, title]) => {
    const count = asMap(choices.get(answer));
    const saved = asNumber(count.get('taken')) === 0 ? '' : ` (${asNumber(count.get('savedMs'))} ms saved)`;
    return `${asNumber(count.get('choices'))} ${title}${saved}`;
  });
  return counts.join(', ');
}

function modelText(model: JsonMap): string {
  const samples = asNumber(model.get('sampleCount'));
  const kind = `${asText(model.get('gpuType'))}/${asText(model.get('mode'))}`;
  const at = model.has('learnedAt') ? ` at ${new Date(asNumber(model.get('learnedAt'))).toISOString()}` : '';
  const source =
    samples === 0 ? 'capacity model' : `version ${asNumber(model.get('version'))}, learned from ${samples} runs${at}`;
  if (!model.has('error')) return `${kind}: ${source}`;
  const percent = (100 * asNumber(model.get('error'))).toFixed(1);
  return `${kind}: ${source}, off by ${percent} % in ${asNumber(model.get('runs'))} runs beside others`;
}

function line(title: string, text: string): void {
  stdout.print(`${stdout.bold(title.padEnd(10))} ${text}\n`);
}

// Processes on GPUs that are no functions: registered by hand, or started here as MPS clients.
import type { Flags } from '../../args/flags.js';
import { checkArgs, type CommandContext } from '../../command.js';
import { argumentError, messageOf, usageError, wrapError } from '../../errors.js';
import { readTextFile } from '../../files.js';
import { asList, asMap, asText, type Json, type JsonMap } from '../../json/json.js';
import { parseJson } from '../../json/parse.js';
import { stdout } from '../../terminal.js';
import { areFeatures } from './features.js';
import { progressCells, progressTitles, stateOf, table } from './format.js';
import { runWorkload, workloadsRoute } from './run-workload.js';

/** The body of a request that registers a workload, from the flags. @throws WskError */
function workloadBody(name: string, flags: Flags): JsonMap {
  const body: JsonMap = new Map([['name', name]]);
  if (flags.given('device')) body.set('device', flags.text('device'));
  if (flags.given('memory')) body.set('memoryMiB', flags.int('memory'));
  if (flags.given('degradation')) {
    const fraction = Number(flags.text('degradation'));
    if (!(fraction >= 0 && fraction <= 1)) throw usageError('--degradation must be a number from 0 to 1');
    body.set('maxDegradation', fraction);
  }
  if (flags.given('baseline')) body.set('baselineRate', positive(flags.text('baseline'), '--baseline'));
  if (flags.given('features')) body.set('features', featuresIn(flags.text('features')));
  return body;
}

/** The figures that a flag gives as JSON, or by the name of a file with JSON. @throws WskError */
function featuresIn(given: string): JsonMap {
  const text = given.trimStart().startsWith('{') ? given : readTextFile(given);
  let features: Json;
  try {
    features = parseJson(text, { whole: true });
  } catch (error) {
    throw usageError(`--features must be a JSON object of numbers: ${messageOf(error)}`);
  }
  if (!areFeatures(features)) throw usageError('--features must be a JSON object of numbers');
  return features;
}

/** @throws WskError */
function positive(value: string, name: string): number {
  if (!(Number(value) > 0)) throw usageError(`${name} must be a number above 0`);
  return Number(value);
}

async function add({ args: [, ...args], client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'A workload name is required.');
  const [name = ''] = args;
  const body = workloadBody(name, flags);
  if (flags.given('pid')) body.set('pid', flags.int('pid'));
  try {
    const added = asMap(await client.callRoute('POST', workloadsRoute, body));
    stdout.print(`${stdout.ok} registered workload ${asText(added.get('id'))} on ${asText(added.get('device'))}\n`);
  } catch (error) {
    throw wrapError(error, 'Unable to register the workload');
  }
}

/** `wsk gpu workloads`, and `wsk gpu workload list`. */
export async function listWorkloads({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let workloads: JsonMap[];
  try {
    workloads = asList(await client.callRoute('GET', workloadsRoute)).map(asMap);
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the list of workloads');
  }
  const fields = ['id', 'name', 'origin', 'invoker', 'device', 'pid', 'memoryMiB'];
  const titles = ['Workload', 'Name', 'Origin', 'Invoker', 'GPU', 'Process', 'MiB', ...progressTitles, 'State'];
  const rows = workloads.map((one) => [
    ...fields.map((field) => asText(one.get(field)) || '-'),
    ...progressCells(one),
    stateOf(one) || '-',
    asText(one.get('namespace')) || '-',
  ]);
  const right = ['Process', 'MiB', ...progressTitles];
  const { header, rows: lines } = table([...titles, 'Namespace'], rows, right);
  stdout.print(stdout.bold(header) + lines.join(''));
}

async function remove({ args: [, ...args], client }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'A workload id is required.');
  const [id = ''] = args;
  try {
    await client.callRoute('DELETE', `${workloadsRoute}/${encodeURIComponent(id)}`);
  } catch (error) {
    throw wrapError(error, `Unable to remove workload '${id}'`);
  }
  stdout.print(`${stdout.ok} removed workload ${id}\n`);
}

/** `wsk gpu workload rate ID RATE`. */
async function reportRate({ args: [, ...args], client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 2, 2, 'A workload id and its rate are required.');
  const [id = '', rate = ''] = args;
  const body: JsonMap = new Map([['rate', positive(rate, 'the rate')]]);
  if (flags.given('baseline')) body.set('baselineRate', positive(flags.text('baseline'), '--baseline'));
  try {
    await client.callRoute('PUT', `${workloadsRoute}/${encodeURIComponent(id)}`, body);
  } catch (error) {
    throw wrapError(error, `Unable to tell the rate of workload '${id}'`);
  }
  stdout.print(`${stdout.ok} told the rate of workload ${id}\n`);
}

const verbs: Record<string, (context: CommandContext) => Promise<void>> = {
  add,
  rate: reportRate,
  list: ({ args: [, ...args], ...context }) => listWorkloads({ ...context, args }),
  remove,
  run: (context) => runWorkload(context, (name) => workloadBody(name, context.flags)),
};

/** `wsk gpu workload`. */
export async function workload(context: CommandContext): Promise<void> {
  const [verb] = context.args;
  const known = verb === undefined || !Object.hasOwn(verbs, verb) ? undefined : verbs[verb];
  if (known === undefined)
    throw argumentError('Invalid argument(s). One of add, list, rate, remove and run is required.');
  return known(context);
}

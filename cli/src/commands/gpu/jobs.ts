// Training jobs: functions that run for hours or days on GPUs.
import { setTimeout as sleep } from 'node:timers/promises';
import { readDuration } from '../../args/duration.js';
import { mergeObjects } from '../../args/parameters.js';
import { checkArgs, parameterFlags, type Command, type CommandContext } from '../../command.js';
import { argumentError, usageError, wrapError, WskError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { stripStamp } from '../activation/activations.js';
import { table } from './format.js';

const jobsRoute = 'gpu/jobs';
const defaultCheckpointMiB = 10_240;
const followMs = 1000;

function bodyOf(action: string, { flags, pairs }: CommandContext): JsonMap {
  const body: JsonMap = new Map<string, Json>([['action', action]]);
  const parameters = mergeObjects(pairs.parameters, 'parameter');
  if (parameters.size > 0) body.set('parameters', parameters);
  for (const field of ['gpus', 'members', 'restarts']) if (flags.given(field)) body.set(field, flags.int(field));
  if (flags.given('time-limit')) body.set('timeLimitMs', readDuration(flags.text('time-limit'), '--time-limit'));
  if (flags.given('rendezvous-timeout')) {
    body.set('rendezvousMs', readDuration(flags.text('rendezvous-timeout'), '--rendezvous-timeout'));
  }
  if (flags.given('checkpoint-size')) body.set('checkpointMiB', flags.int('checkpoint-size'));
  else if (flags.bool('checkpoint')) body.set('checkpointMiB', defaultCheckpointMiB);
  return body;
}

async function run(context: CommandContext): Promise<void> {
  const { args, client } = context;
  checkArgs(args, 1, 1, 'An action name is required.');
  const [action = ''] = args;
  const body = bodyOf(action, context);
  let job: JsonMap;
  try {
    job = asMap(await client.callRoute('POST', jobsRoute, body));
  } catch (error) {
    throw wrapError(error, `Unable to run '${action}' as a training job`);
  }
  stdout.print(`${stdout.ok} started job ${asText(job.get('id'))}\n`);
}

/** The time of a moment, or `-`. */
const timeOf = (value: Json | undefined): string =>
  value === undefined ? '-' : new Date(asNumber(value)).toISOString().replace(/\.\d+Z$/, 'Z');

const numberOf = (value: Json | undefined): string =>
  value === undefined ? '-' : String(Number(asNumber(value).toPrecision(4)));

function row(job: JsonMap): string[] {
  const devices = asList(job.get('devices')).map(asText).join(',');
  const restarts = `${asNumber(job.get('restarts'))}/${asNumber(job.get('maxRestarts'))}`;
  const stalled = job.get('stalled') === true ? ' (stalled)' : '';
  return [
    asText(job.get('id')),
    asText(job.get('action')),
    `${asText(job.get('state'))}${stalled}`,
    asText(job.get('members')),
    asText(job.get('gpus')),
    job.has('steps') ? String(asNumber(job.get('steps'))) : '-',
    numberOf(job.get('rate')),
    restarts,
    String(asNumber(job.get('interruptions'))),
    timeOf(job.get('createdAt')),
    devices || '-',
    asText(job.get('reason')),
  ];
}

async function list({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let jobs: JsonMap[];
  try {
    jobs = asList(await client.callRoute('GET', jobsRoute)).map(asMap);
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the list of training jobs');
  }
  const right = ['Members', 'GPUs', 'Steps', 'Steps/s', 'Restarts', 'Interruptions'];
  const titles = ['Job', 'Action', 'State', ...right, 'Since', 'Place', 'Reason'];
  const { header, rows } = table(titles, jobs.map(row), right);
  stdout.print(stdout.bold(header) + rows.join(''));
}

/** Prints the logs of all runs in turn, and with `--follow` what is added until the job has ended. */
async function logs({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'A job ID is required.');
  const [id = ''] = args;
  const follows = flags.bool('follow');
  const member = flags.given('member') ? `[${flags.int('member')}] ` : '';
  let query = '';
  for (;;) {
    let part: JsonMap;
    try {
      part = asMap(await client.callRoute('GET', `${jobsRoute}/${encodeURIComponent(id)}/logs${query}`));
    } catch (error) {
      throw wrapError(error, `Unable to get the logs of job '${id}'`);
    }
    const lines = asList(part.get('lines')).map((line) => stripStamp(asText(line)));
    stdout.print(lines.map((line) => (line.startsWith(member) ? `${line}\n` : '')).join(''));
    if (!part.has('next')) return;
    const next = asMap(part.get('next'));
    const isLater = asNumber(next.get('attempt')) !== asNumber(part.get('attempt'));
    if (lines.length === 0 && !isLater) {
      if (!follows) return;
      await sleep(followMs);
    }
    query = `?attempt=${asNumber(next.get('attempt'))}&from=${asNumber(next.get('from'))}`;
  }
}

async function stop({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'A job ID is required.');
  const [id = ''] = args;
  const graceMs = flags.given('grace') ? `?graceMs=${readDuration(flags.text('grace'), '--grace')}` : '';
  let job: JsonMap;
  try {
    job = asMap(await client.callRoute('DELETE', `${jobsRoute}/${encodeURIComponent(id)}${graceMs}`));
  } catch (error) {
    throw wrapError(error, `Unable to stop job '${id}'`);
  }
  const state = asText(job.get('state'));
  if (state === 'stopping') stdout.print(`${stdout.ok} job ${id} is being stopped\n`);
  else if (state === 'stopped') stdout.print(`${stdout.ok} job ${id} is stopped\n`);
  else throw new WskError(`Job '${id}' has ended before: it is ${state}.`);
}

/** Flags of each verb; the other verbs refuse them. */
const verbs: Record<string, { run: (context: CommandContext) => Promise<void>; flags: readonly string[] }> = {
  run: {
    run,
    flags: ['gpus', 'members', 'restarts', 'time-limit', 'rendezvous-timeout', 'checkpoint', 'checkpoint-size'],
  },
  list: { run: list, flags: [] },
  logs: { run: logs, flags: ['follow', 'member'] },
  stop: { run: stop, flags: ['grace'] },
};

/** `wsk gpu job`. */
export const jobCommand: Command = {
  name: 'job',
  argsUsage: '(run ACTION_NAME | list | logs JOB | stop JOB)',
  summary: 'run a function for hours or days as a training job, on one or several GPUs; list, follow and stop jobs',
  flags: [
    ...parameterFlags,
    { name: 'gpus', type: 'int', help: 'the `NUMBER` of GPUs of each run (run; default: the members)' },
    { name: 'members', type: 'int', help: 'the `NUMBER` of processes that train together, one for each GPU (run)' },
    { name: 'restarts', type: 'int', help: 'begin again at most `TIMES` after failures (run; default: 3)' },
    { name: 'time-limit', type: 'string', help: 'the longest `TIME` of all runs together: 12h, 3d (run; default: 1d)' },
    {
      name: 'rendezvous-timeout',
      type: 'string',
      help: 'the longest `TIME` until all members have met, 0 for any (run; default: 10m)',
    },
    { name: 'checkpoint', type: 'bool', help: 'give each run the folder of checkpoints of the job (run)' },
    {
      name: 'checkpoint-size',
      type: 'int',
      help: `the most \`MIB\` of checkpoints; implies --checkpoint (run; default: ${defaultCheckpointMiB})`,
    },
    { name: 'follow', type: 'bool', help: 'print what is added until the job has ended (logs)' },
    { name: 'member', type: 'int', help: 'print what member `NUMBER` has printed only (logs)' },
    { name: 'grace', type: 'string', help: 'end its members after `TIME` (stop; default: 30s)' },
  ],
  run(context) {
    const [verb = '', ...args] = context.args;
    const known = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
    if (known === undefined) throw argumentError('Invalid argument(s). One of run, list, logs and stop is required.');
    const all = Object.values(verbs).flatMap(({ flags }) => flags);
    const wrong = all.find((name) => context.flags.given(name) && !known.flags.includes(name));
    if (wrong !== undefined) throw usageError(`--${wrong} is no flag of 'wsk gpu job ${verb}'`);
    return known.run({ ...context, args });
  },
};

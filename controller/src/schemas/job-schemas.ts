import { list, object, text, whole, yesNo } from './json-schema.js';

/** What the owner of a training job asks for, in new jobs and in those that are shown. */
const order = {
  gpus: whole("GPUs of each run, all of one node; default: the members, or the annotation's"),
  members: whole('Processes that train together: 1, or one for each GPU; default 1'),
  timeLimitMs: whole('Longest time of all runs together, ms; default a day'),
  rendezvousMs: whole('Longest time until all members have met, ms; 0: no bound; default ten minutes'),
  checkpointMiB: whole('Bound on the checkpoint folder, MiB; absent: the job has none'),
};

/** Training jobs. */
export const jobSchemas = {
  NewGpuJob: object(
    {
      action: text("Name of the action, '/NAMESPACE/NAME' or one of the caller's own"),
      parameters: { type: 'object', description: 'Arguments of each run' },
      restarts: whole('Further runs after failures; default 3'),
      ...order,
    },
    ['action'],
  ),
  GpuJob: object(
    {
      id: text('Id'),
      namespace: text('Namespace of the owner'),
      action: text('Fully qualified name of the action'),
      state: {
        type: 'string',
        description: 'waiting: the next run begins at retryAt; queued: the run waits for GPUs',
        enum: ['queued', 'running', 'waiting', 'stopping', 'succeeded', 'failed', 'stopped'],
      },
      reason: text('Why it waits, failed or was stopped'),
      ...order,
      maxRestarts: whole('Further runs that it may have after failures'),
      restarts: whole('Further runs that it had after failures'),
      interruptions: whole('Runs that the platform ended, which count as no restarts'),
      createdAt: whole('Time of its acceptance, epoch milliseconds'),
      endedAt: whole('Time of its end, epoch milliseconds'),
      retryAt: whole('Time of its next run, epoch milliseconds'),
      ranMs: whole('Time of its ended runs together, ms'),
      invoker: text('Invoker that has its checkpoints'),
      devices: list({ type: 'string' }, 'UUIDs of the GPUs of its run'),
      steps: { type: 'number', description: 'Steps in its last run' },
      rate: { type: 'number', description: 'Steps per second' },
      stalled: yesNo(
        'Whether it runs and no step has ended for a minute, ten usual steps and twice the longest pause between steps',
      ),
      joined: whole('Members that have met the others'),
      checkpointUsedMiB: whole('Size of the checkpoint folder, MiB'),
      attempts: list(
        object({
          number: whole('Number of the run, from 1'),
          activationId: text('Id of its activation'),
          startedAt: whole('Time of its start, epoch milliseconds'),
          endedAt: whole('Time of its end, epoch milliseconds'),
          reason: text('Why it ended'),
          steps: { type: 'number', description: 'Steps in the run' },
        }),
        'The last runs, the newest last',
      ),
    },
    ['id', 'namespace', 'action', 'state', 'gpus', 'members', 'createdAt', 'attempts'],
  ),
  GpuJobLog: object(
    {
      attempt: whole('Number of the run'),
      from: whole('Place of the first line in the log of the run; greater than asked for if lines are left out'),
      lines: list({ type: 'string' }, 'Lines of the log, as in the logs of an activation'),
      next: object({ attempt: whole('Run of the next part'), from: whole('First line of the next part') }),
      state: text('State of the job; without next the log has ended'),
    },
    ['attempt', 'from', 'lines', 'state'],
  ),
};

import type { JsonObject } from '@gpuwhisk/common/json';
import { list, object, text, whole } from './json-schema.js';

/** Functions on GPUs: their instances, trials, and what was learned of them. */
export const gpuFunctionSchemas = {
  GpuTriedSet: object({
    beside: list({ type: 'string' }, 'Functions that ran beside it'),
    state: text('trying: it is measured; stays: it gains and may run; split: it does not, and is kept apart'),
    runs: whole('Measured runs of its members until it was decided'),
    gain: {
      type: 'number',
      description: 'Work that the set does, in the unit of turns: sum of times alone over times together',
    },
    slowdown: { type: 'number', description: 'How many times longer than alone the function takes in it' },
    until: whole('Until when it is kept apart, epoch ms'),
    text: text('The same in words'),
  }),
  GpuFunctionModel: object(
    {
      action: text('Fully qualified name of the action'),
      version: text('Present version of the action'),
      state: text('loaded: an instance of the present version serves without a load; loading, or unloaded'),
      instances: list(
        object(
          {
            state: text('loading, idle, running or draining: it ends once nothing runs in it'),
            container: text('Container; absent before the start of its process'),
            version: text('Version of the action that it serves'),
            invoker: text('Its invoker'),
            gpus: list({ type: 'string' }, 'UUIDs of its GPUs, or of its MIG instance'),
            share: { type: 'number', description: 'Class of its share of the SMs, 0 to 1' },
            memoryMiB: whole('Device memory that it may hold on each GPU, MiB'),
            heldMiB: whole('Device memory that it was last seen to hold, MiB'),
            loadMs: whole('Time to start its process and to load the function, ms'),
            since: whole('Start of its process, epoch ms'),
            idleSince: whole('End of its last run, or of its load, epoch ms; absent while it runs'),
            running: whole('Activations that run in it'),
          },
          ['state', 'gpus', 'share', 'memoryMiB', 'running'],
        ),
        'Instances that run for the namespace of the caller',
      ),
      waiting: whole('Activations that wait for a GPU at this controller'),
    },
    ['action', 'version', 'state', 'instances', 'waiting'],
  ),
  GpuFunctionProfile: object(
    {
      action: text('Fully qualified name of the action'),
      version: text('Version of the action that is profiled'),
      state: text('none, waiting (for an idle GPU), running, cancelled, impossible or done'),
      problem: text('Why no trial is run'),
      goal: { type: 'object', description: 'sloMs; without it, throughput near that alone is to be kept' },
      kinds: list(
        object(
          {
            gpuType: text('Short name of the model of GPU'),
            mode: text('How processes share the GPU'),
            trials: list(
              { type: 'object' },
              'Batch, share in percent, and time in ms or the failure; isOverlong: longer than samples may run',
            ),
            mostTrials: whole('The most trials that the search takes'),
            job: { type: 'object', description: 'State of the job: stage, GPU, attempts, reason of a failure' },
            profile: {
              type: 'object',
              description:
                'request and limit in thousandths of the SMs, batch, ms and limitMs, memoryMiB, keepsGoal, reason',
            },
            failed: text('Why the search has no result'),
          },
          ['gpuType', 'mode', 'trials', 'mostTrials'],
        ),
        'Trials by kind of GPU',
      ),
    },
    ['action', 'state', 'kinds'],
  ),
  GpuLearnedFunction: object(
    {
      function: text('Fully qualified name of the action'),
      version: text('Version of the action; empty: only its processes were observed'),
      gpuType: text('Short name of the model of GPU'),
      mode: text('How processes share the GPU'),
      features: {
        type: 'object',
        description: 'Measured features by name: smUtil, the fraction of the SMs that the function fills; dramUtil',
      },
      fillSource: {
        type: 'string',
        description:
          'Source of smUtil: times of the sample at share classes, times of runs, launches counted by kernel tokens, or SM activity',
        enum: ['sample', 'runs', 'launches', 'gpm'],
      },
      shares: {
        type: 'object',
        description:
          'Request and limit from trials, thousandths of the SMs, for a batch; whether they keep the goal, and the reason',
      },
      batches: list(
        { type: 'object' },
        'By batch size and size of the inputs (inputs: upTo, in bytes of the parameters or as the function reports it): soloMs and ' +
          'whether it was measured alone, startMs, runs, predicted and measured slowdown beside others',
      ),
      heldMiB: whole('Largest memory of an instance when last observed, MiB'),
      alone: {
        type: 'object',
        description:
          'Its version runs alone until then (until, epoch ms). state: faulting (a fault of it ended the runs of all functions on its ' +
          'MPS server) or suspect (it was one of several)',
      },
    },
    ['function', 'version', 'gpuType', 'mode', 'batches'],
  ),
} satisfies Record<string, JsonObject>;

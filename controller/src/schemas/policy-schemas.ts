import { list, object, ref, text, whole, yesNo } from './json-schema.js';

const shareCount = object({
  choices: whole('Choices of shares for activations that run together, since the start of the process'),
  taken: whole("Choices that used the table's answer instead of the fills of the functions"),
  savedMs: whole(
    'Time until the ends of all activations that these answers saved, ms: measured on a hit, else predicted',
  ),
});

/** The GPU policy, its changes and its trials. */
export const policySchemas = {
  GpuPolicy: object({
    policy: text('Name of the policy in force, with changed stages and settings'),
    configured: text('Name of the configured policy'),
    set: object({
      at: whole('When an operator has set the policy in force in place of the configured one, epoch ms'),
      by: text('Subject of the operator (operators)'),
    }),
    undone: object({
      at: whole('When the platform has put the former policy back in place of a faulty one, epoch ms'),
      policy: text('Name of the faulty policy'),
      why: text('Its faults'),
    }),
    problem: text('Why the policy that was set cannot be used, so that the configured one is in force'),
    changes: list(ref('GpuPolicyChange'), 'The last 20 changes, newest first (operators)'),
    admission: text('Treatment of tasks that cannot meet their SLO: best-effort or refuse'),
    decides: yesNo('Whether this controller is the leader'),
    stages: { type: 'object', description: 'The implementation of each stage' },
    settings: { type: 'object', description: 'Settings in force, by stage' },
    settingNotes: {
      type: 'object',
      description:
        "Of each setting by name: 'meaning', and 'source' of its value: configuration, operator, policy or default",
    },
    inert: list(
      object({
        stage: text('Stage of the policy'),
        part: text('Its implementation'),
        why: text('What the part lacks on this cluster'),
        mend: text('The command, or the setting of a cluster, that mends it'),
      }),
      'Parts of the policy without effect on the cluster as it is',
    ),
    choices: { type: 'object', description: 'Policies with their summaries, and the implementations of each stage' },
    functions: whole('Number of functions with learned data'),
    sharedSets: whole('Number of sets with measured shares'),
    shareChoices: object({ hit: shareCount, near: shareCount, miss: shareCount }),
    models: list(
      object({
        gpuType: text('Short name of the model of GPU'),
        mode: text('How processes share the GPU'),
        version: whole('Version of the predictor; increases with each training'),
        sampleCount: whole('Number of runs that the predictor was trained on'),
        learnedAt: whole('Time of the training, epoch ms'),
        error: { type: 'number', description: 'Median of |predicted / measured − 1| of runs beside others' },
        runs: whole('Number of runs behind the error'),
      }),
      'Learned predictors, and the capacity model where there is none',
    ),
    geometry: {
      type: 'object',
      description: 'State of stage geometry: targets by type of device, devices, last cuts; absent: the stage has none',
    },
    modules: list(
      object({ path: text('Path of the module'), sha256: text('SHA-256 of its text, hexadecimal') }),
      'Policy modules of this controller (operators)',
    ),
  }),
  GpuPolicyTrial: object(
    {
      policy: { description: "Name of a policy, or an object that starts from one as in 'gpu.policy'" },
      minutes: whole('Replay the arrivals of this many minutes, 1 to 60; default 60'),
      arrivals: list(
        object(
          {
            function: text('Name'),
            atMs: { type: 'number', description: 'Time of arrival, ms' },
            soloMs: { type: 'number', description: 'Time alone on a whole GPU, ms' },
            memoryMiB: { type: 'number', description: 'Device memory, MiB' },
            sloMs: { type: 'number', description: 'From arrival to result, ms; absent: best effort' },
            startMs: { type: 'number', description: 'Cold start, ms; default 0' },
            smUtil: { type: 'number', description: 'Fraction of the SMs used when alone, 0 to 1; default 1' },
          },
          ['function', 'atMs', 'soloMs', 'memoryMiB'],
        ),
        'Arrivals to replay instead of the recorded ones',
      ),
    },
    ['policy'],
  ),
  GpuPolicyTrialResult: object({
    arrivals: whole('Arrivals that were replayed'),
    leftOut: whole('Arrivals of functions that were never measured, or that need several GPUs'),
    gpus: whole('GPUs, or MIG instances, of the replay'),
    results: list(
      object({
        policy: text('Name of the policy, with changed stages and settings'),
        meanWaitMs: { type: 'number', description: 'Mean time from arrival to start, ms' },
        p99WaitMs: { type: 'number', description: '99th percentile of the time from arrival to start, ms' },
        meanMs: { type: 'number', description: 'Mean time from arrival to result, ms' },
        missed: whole('Arrivals with an SLO that missed it'),
        withSlo: whole('Arrivals with an SLO'),
        refused: whole('Arrivals that were refused'),
        stopped: whole('Arrivals whose run was stopped for another one'),
        gpuHours: { type: 'number', description: 'GPU hours in use' },
        problem: text('Why the replay did not end'),
      }),
      'Results of the policy in force, then of the other one',
    ),
  }),
  GpuPolicyChoice: object(
    { policy: { description: "Name of a policy, or an object that starts from one as in 'gpu.policy'" } },
    ['policy'],
  ),
  GpuPolicyChange: object({
    at: whole('Time of the change, epoch ms'),
    by: text("Subject of the operator, or 'platform' where a faulty policy was undone"),
    from: text('Name of the policy that was in force before'),
    to: text('Name of the policy that is in force since'),
    why: text('Faults of a policy that was undone; absent: an operator has changed it'),
  }),
};

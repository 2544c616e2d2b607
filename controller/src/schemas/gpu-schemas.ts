import { tokenStates } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { jobSchemas } from './job-schemas.js';
import { nodeSchemas } from './node-schemas.js';
import { policySchemas } from './policy-schemas.js';
import { list, object, ref, text, whole, yesNo } from './json-schema.js';

const workloadRate = {
  type: 'number',
  description: 'Last reported rate of the workload, in the unit of its baseline',
} as const;
const baselineRate = {
  type: 'number',
  description: 'Rate of the workload alone on the device, in any unit per second',
} as const;
const features = {
  type: 'object',
  description: 'Figures by name, as in the annotation of a function: of predictors beside it',
  additionalProperties: { type: 'number' },
} as const;
const tokenState = {
  type: 'string',
  description: 'State of the device under kernel tokens: what its functions launch, and whether one is violated',
  enum: [...tokenStates] as string[],
};
const maxDegradation = {
  type: 'number',
  description: 'Bound of the degradation, 1 - rate / baseline, 0 to 1; default 0.05',
} as const;

/** GPUs: devices, tenants, decisions and learned data. */
export const gpuSchemas = {
  ...jobSchemas,
  ...nodeSchemas,
  ...policySchemas,
  Prewarmer: object({
    invoker: text('Invoker of the container'),
    container: text('Name of the container; `snapshot` of a snapshot'),
    kind: text('Kind of the actions that the container can run'),
    memoryMiB: whole('Memory limit of the container, or memory of the snapshot, MiB'),
    imports: list({ type: 'string' }, 'Modules that the container has loaded'),
    cuda: yesNo('Whether pairs of native functions and of Python make a CUDA context ahead, where a device is visible'),
    cudaContext: {
      type: 'string',
      description: 'How the CUDA context is kept from function to function',
      enum: ['checkpoint', 'reset', 'owner', 'ends'],
    },
    pid: whole('Process id as seen by functions in the container'),
    action: text('Function of the snapshot; absent of a container'),
    namespace: text('Namespace that the function of the snapshot runs for; absent of a container'),
    unfit: text('Why containers with the same modules are no copies of this one, or why the function has no snapshot'),
  }),
  GpuDevice: object(
    {
      invoker: text('Invoker on the node of the device'),
      uuid: text('UUID of the device'),
      index: whole('Number of the device on its node'),
      name: text("The vendor's name"),
      type: text('Short name of the model'),
      mode: {
        type: 'string',
        description: 'How processes share the device',
        enum: ['exclusive', 'timeslice', 'mps', 'mig'],
      },
      smCount: whole('Streaming multiprocessors'),
      memoryMiB: whole('Memory, MiB'),
      usedMemoryMiB: whole('Memory in use, MiB'),
      utilisation: { type: 'number', description: 'Part of the time in which some kernel ran, 0 to 1' },
      contextMiB: whole('Measured memory of a CUDA context, MiB'),
      simulated: yesNo('Whether the device is simulated'),
      slices: list({ type: 'object' }, 'MIG instances'),
      health: object({ state: text('healthy, leaving, cordoned, draining or offline') }),
      cut: object(
        {
          profiles: list(text('Profile'), 'Wanted MIG profiles; none: the whole device'),
          state: text('waiting, draining, cutting, done or refused'),
          reason: text('Why it waits or was refused'),
          drainMs: whole('Time until nothing ran on the slices that go, ms'),
          cutMs: whole('Time from then to the new slices, ms'),
        },
        ['profiles', 'state'],
      ),
      tokenState,
      functions: list(ref('GpuFunction'), 'Instances of functions; without names if of other namespaces'),
      workloads: list(ref('GpuWorkload'), 'Processes other than functions that the caller may see'),
    },
    ['invoker', 'uuid', 'name', 'type', 'mode', 'smCount', 'memoryMiB', 'health', 'functions', 'workloads'],
  ),
  GpuFunction: object({
    action: text('Fully qualified name of the action; absent for a pre-warmer'),
    namespace: text('Namespace of the invocation'),
    container: text('Name of the container'),
    slice: text('UUID of the MIG instance'),
    share: { type: 'number', description: 'Share of the SMs that the process was started with, 0 to 1' },
    smRequest: { type: 'number', description: 'Guaranteed fraction of the SMs, 0 to 1' },
    smLimit: { type: 'number', description: 'Largest fraction of the SMs, 0 to 1' },
    memoryMiB: whole('Memory reserved for the instance, MiB'),
    heldMiB: whole('Memory in use when last observed, context included, MiB'),
    launches: object({
      blocks: whole('Kernel blocks launched, if kernel tokens count them'),
      waits: whole('Launches that had to wait for tokens'),
      soloRate: { type: 'number', description: 'Kernel blocks in 5 ms when alone; 0 if unknown' },
      cycles: whole('Launch cycles that its runtime has marked'),
      cycleMs: { type: 'number', description: 'Length of the last cycle, ms' },
      cycleBatch: whole('Batch size of the last cycle'),
      state: tokenState,
      budget: {
        type: 'number',
        description: 'Fraction of the SMs that the tokens of the last period are worth, 0 to 1; absent if unbounded',
      },
    }),
    running: whole('Activations that run in the instance'),
    sets: list(ref('GpuTriedSet'), 'Sets of functions with instances there that it was tried in, the last one first'),
    training: object({
      job: text('Id of the training job that runs in the instance'),
      attempt: whole('Number of its run'),
      steps: { type: 'number', description: 'Steps in this run' },
      rate: { type: 'number', description: 'Steps per second' },
      stalled: yesNo('Whether the present step takes more than twice as long as the last ones, and more than a second'),
    }),
  }),
  GpuWorkload: object(
    {
      id: text('Id'),
      name: text('Name'),
      origin: text('registered, started or discovered'),
      invoker: text('Invoker on the node of the workload'),
      device: text('UUID of the device'),
      pid: whole('Process id on the node'),
      processStart: whole('Start of the process, clock ticks since boot'),
      since: whole('Time of registration or first observation, epoch milliseconds'),
      memoryMiB: whole('Memory limit or memory in use, MiB'),
      mpsPercent: whole('Percent of the SMs that a started workload may use'),
      maxDegradation,
      features,
      baselineRate,
      baselineFrom: {
        type: 'string',
        description: 'declared by the owner, or measured from reports while no function ran on the device',
        enum: ['declared', 'measured'],
      },
      declaredBaselineRate: {
        type: 'number',
        description: 'Declared baseline that a measured one has replaced, because reports were far above it',
      },
      aloneRate: {
        type: 'number',
        description: 'Median of the last rates reported while no function ran on the device',
      },
      rate: workloadRate,
      reportedAt: whole('Time of the last report of the rate, epoch milliseconds; absent: never reported'),
      degradation: {
        type: 'number',
        description: '1 - rate / baseline, at least 0; absent: no baseline, or no report in the last 10 s',
      },
      estimatedDegradation: {
        type: 'number',
        description: 'Estimate by the functions that run on the device; absent: none runs, or degradation is known',
      },
      estimatedFrom: {
        type: 'string',
        description: "Source of the workload's demand for SMs: SM activity alone, or its share",
        enum: ['activity', 'shares'],
      },
      state: {
        type: 'string',
        description: 'Degradation against its bound; stale: no report in the last 10 s; absent: never reported',
        enum: ['within-bound', 'beyond-bound', 'no-baseline', 'stale'],
      },
      measuredFeatures: {
        type: 'object',
        description: 'Figures by name, measured while the workload computed alone on its device; absent: never seen',
        additionalProperties: { type: 'number' },
      },
      namespace: text('Namespace of the owner; absent if discovered'),
      attested: yesNo(
        'Whether the agent attests a process of the workload on its device; only then its bound counts. Absent: registered by an operator, or discovered',
      ),
      command: text('Command of the process'),
      env: { type: 'object', description: 'Environment with which the process must be started to be an MPS client' },
    },
    ['id', 'name', 'origin', 'invoker', 'device', 'maxDegradation'],
  ),
  NewGpuWorkload: object(
    {
      name: text('Name'),
      device: text('UUID of the device; default: the one with most free memory'),
      pid: whole('Process id on the node'),
      memoryMiB: whole('Memory limit of the workload, MiB'),
      mpsPercent: whole('Percent of the SMs that the workload may use, 1 to 100'),
      maxDegradation,
      features,
      baselineRate,
      command: text('Command of the process'),
      start: yesNo('Whether the process is started later, as an MPS client'),
    },
    ['name'],
  ),
  GpuLaunch: object(
    {
      action: text("Name of the action, '/NAMESPACE/NAME' or one of the caller's own"),
      devices: list(
        { type: 'string' },
        'UUIDs of the GPUs, or of the MIG instance; default: where the policy would put a request',
      ),
      mpsPercent: whole('Class of the share, percent of the SMs; default: what the function asks for'),
    },
    ['action'],
  ),
  GpuLaunched: object(
    {
      action: text('Fully qualified name of the action'),
      device: text('UUID of the first device'),
      slice: text('UUID of the MIG instance'),
      share: { type: 'number', description: 'Share of the SMs, 0 to 1' },
    },
    ['action'],
  ),
  GpuShare: object(
    {
      smRequest: { type: 'number', description: 'Guaranteed fraction of the SMs, 0 to 1' },
      smLimit: { type: 'number', description: 'Largest fraction of the SMs, 0 to 1' },
    },
    ['smRequest', 'smLimit'],
  ),
  GpuGeometry: object(
    {
      profiles: list(
        { type: 'string' },
        "Profiles of the MIG instances, such as '3g.20gb'; empty: the device is not cut",
      ),
    },
    ['profiles'],
  ),
  GpuWish: object(
    {
      wish: text('cordon: no new work; drain: no new work, and idle instances end; uncordon: work again'),
      at: whole('Time of the request, epoch ms'),
      uuid: text('UUID of the device'),
    },
    ['wish'],
  ),
  GpuWorkloadChanges: object({
    pid: whole('Process id on the node'),
    processStart: whole(
      'Start of the process, clock ticks since boot; absent: a later process with this id counts as the same',
    ),
    maxDegradation,
    features,
    baselineRate,
    rate: workloadRate,
    stalled: yesNo('Whether no step ends, so that the rate is only what the present step can still reach'),
  }),
  GpuQueued: object(
    {
      activationId: text('Id of the activation'),
      action: text('Fully qualified name of the action'),
      namespace: text('Namespace of the invocation'),
      position: whole('Position in the queue of all namespaces, from 1'),
      waitedMs: whole('Waiting time so far, ms'),
      sloMs: whole('From acceptance to result, ms; absent: best effort'),
      memoryMiB: whole('Device memory required, MiB'),
      gpus: whole('Number of devices required'),
      refusals: list({ type: 'string' }, 'Reasons of agents that refused the activation'),
      rejected: list(ref('GpuRejection'), 'Rejected places of the last decision, with reasons'),
    },
    ['activationId', 'action', 'namespace', 'position', 'waitedMs', 'memoryMiB', 'gpus', 'refusals', 'rejected'],
  ),
  GpuDecision: object(
    {
      at: whole('Time of the decision, epoch ms'),
      activationId: text('Id of the activation'),
      action: text('Fully qualified name of the action'),
      namespace: text('Namespace of the invocation'),
      policy: text('Policy that decided'),
      placement: { type: 'object', description: 'Devices and share; absent: not placed' },
      reason: text('Reason of the decision'),
      rejected: list(ref('GpuRejection'), 'Alternatives that were not chosen'),
      sloMs: whole('From acceptance to result, ms; absent: best effort'),
      ahead: whole('Activations that waited when it came; absent: not told'),
      waitedFor: text('Why most places did not take it before; absent: it did not wait'),
      run: object({
        aloneMs: { type: 'number', description: 'Time alone that was measured before the run, ms' },
        slowdown: { type: 'number', description: 'Time of the run over that time; absent: not known' },
        beside: list(
          object({
            action: text('Function that ran beside it, or a function of another namespace'),
            namespace: text('Namespace that it ran for; empty for another namespace'),
            part: {
              type: 'number',
              description: 'Part of the run in which it was there; of several at once their sum',
            },
          }),
          'Functions that ran beside it, most first',
        ),
        workloads: whole('Number of workloads on its GPU'),
        unknownBeside: yesNo('Whether work was on its GPU of which nothing is known'),
      }),
    },
    ['at', 'activationId', 'action', 'namespace', 'policy', 'reason', 'rejected'],
  ),
  GpuExplanation: object({
    sentence: text('Where its time went, and what would have helped; absent: nothing is known of it'),
    decisions: list(ref('GpuDecision'), 'Decisions about it by this controller, newest first'),
  }),
  GpuForecast: object(
    {
      function: text('Fully qualified name of the action'),
      namespace: text('Namespace that it runs for'),
      requests: list({ type: 'integer' }, 'Requests in each of the last 60 minutes; the last one is not over'),
      expected: list(
        { type: ['number', 'null'] },
        'What was expected of each of these minutes before it began; null: nothing was forecast',
      ),
      now: {
        type: 'object',
        description: 'Requests expected in the present minute, and the probability of any; absent: no model yet',
        properties: { requests: { type: 'number' }, active: { type: 'number' } },
      },
    },
    ['function', 'namespace', 'requests', 'expected'],
  ),
  GpuQuota: object(
    {
      id: text('Id of the set, for operators'),
      gpuType: text('Short name of the model of GPU'),
      mode: text('How processes share the GPU'),
      driverMajor: whole('Major version of the driver'),
      jobs: list(
        { type: 'object' },
        'Functions with version, and why a search must not run one; without names if of other namespaces',
      ),
      points: list(
        { type: 'object' },
        'Measured shares in percent with slowdowns and number of measurements, the best first',
      ),
      search: {
        type: 'object',
        description: 'Search for shares: stage, number of requests, GPU, attempts, reason of a failure',
      },
    },
    ['gpuType', 'mode', 'jobs', 'points', 'search'],
  ),
  GpuModel: object({
    gpuType: text('Short name of the model of GPU'),
    mode: text('How processes share the GPU'),
    version: whole('Version of the predictor; increases with each training'),
    sampleCount: whole('Number of runs that the predictor was trained on'),
    learnedAt: whole('Time of the training, epoch ms'),
  }),
  GpuDegradations: object(
    {
      models: list(
        object(
          {
            gpuType: text('Short name of the model of GPU'),
            mode: text('How processes share the GPU'),
            victim: text('Who gets slower: workload or function'),
            neighbour: text('Beside what: workload or function'),
            pairs: whole('Number of measured pairs'),
            measurements: whole('Number of their measurements that are kept'),
            predictedBy: {
              type: 'string',
              description:
                'measuring: too few pairs for a training; figures: of both sides, as no model errs less; model: the trained model',
              enum: ['measuring', 'figures', 'model'],
            },
            version: whole('Number of trainings; this field and the next ones are absent before the first one'),
            trainedAt: whole('Time of the last training, epoch ms'),
            trainedPairs: whole('Number of pairs that it learned from'),
            errors: {
              type: 'object',
              description:
                'Errors on pairs that were left out of the training (judged): rmsle and mae of model, of figures and of constant, the mean',
            },
          },
          ['gpuType', 'mode', 'victim', 'neighbour', 'pairs', 'measurements', 'predictedBy'],
        ),
        'By kind of GPU and kinds of victim and neighbour',
      ),
      drifts: list(
        object({
          gpuType: text('Short name of the model of GPU'),
          mode: text('How processes share the GPU'),
          victim: { type: 'object', description: 'kind and name; of a function the namespace that it runs for' },
          neighbour: { type: 'object', description: 'The same of the neighbour' },
          direction: text('worse: slower than predicted; better: faster'),
          departed: whole('Observations that depart in this direction'),
          observed: whole('Observations in all'),
          predicted: {
            type: 'number',
            description: 'Mean predicted degradation, time together over time alone minus 1',
          },
          measured: { type: 'number', description: 'Mean measured degradation' },
        }),
        'Pairs whose measured degradations depart from the predicted ones',
      ),
      measurements: {
        type: 'object',
        description:
          'Measurement of pairs of functions on idle GPUs: functions that allow it, problems of others, pairs chosen and measured, spentS of budgetS in the last hour; absent: this controller measures none',
      },
    },
    ['models', 'drifts'],
  ),
  GpuView: object(
    {
      format: text("'gpuwhisk view'"),
      version: whole('Version of the format'),
      policy: { description: 'The policy in force, as setting gpu.policy' },
      admission: text('best-effort or refuse'),
      event: { type: 'object', description: 'Event that caused the pass' },
      at: { type: 'number', description: 'Time of saving, epoch milliseconds' },
      waiting: list({ type: 'object' }, 'Tasks that wait'),
      ledger: { type: 'object', description: 'Rows of the agents, and the reservations' },
      runs: list({ type: 'array' }, 'Activations that run, each with its task and its start'),
      instances: list({ type: 'object' }, 'Instances of functions'),
      functions: list({ type: 'object' }, 'Functions with their arrivals by second and minute'),
      nodes: list({ type: 'object' }, 'Nodes'),
      devices: list({ type: 'object' }, 'GPUs with their places'),
      workloads: list({ type: 'object' }, 'Processes that are no functions'),
      state: { description: "State of the policy's stages; absent: no state" },
      models: list({ type: 'string' }, 'Learned predictors'),
      quotas: list({ type: 'object' }, 'Measured shares of sets of functions'),
      leftOut: { type: 'object', description: 'Number of items left out, by part of the view' },
    },
    ['format', 'version'],
  ),
  GpuRejection: object({
    what: text('A device, a slice or a node'),
    reason: text('Why it was not chosen'),
    numbers: { type: 'object', description: 'Numbers behind the reason' },
  }),
} satisfies Record<string, JsonObject>;

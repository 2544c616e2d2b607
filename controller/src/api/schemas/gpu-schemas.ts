import type { JsonObject } from '@gpuwhisk/common/json';
import { list, object, ref, text, whole, yesNo } from './json-schema.js';

/** GPUs: what is there, who has it, what was decided and what was learned. */
export const gpuSchemas = {
  Prewarmer: object({
    invoker: text('The invoker that has it'),
    container: text('Name of the container'),
    kind: text('Kind of the actions that it can run'),
    memoryMiB: whole('Memory that it may have, MiB'),
    imports: list({ type: 'string' }, 'Modules that it has loaded'),
    cuda: yesNo('Whether its actions ask for a CUDA context; none is made yet'),
    pid: whole('Process id as its functions see it'),
  }),
  GpuDevice: object(
    {
      invoker: text('The invoker whose node has it'),
      uuid: text('UUID of the device'),
      index: whole('Its number on the node'),
      name: text("The vendor's name"),
      type: text('Short name of the model'),
      mode: { type: 'string', description: 'How it is shared', enum: ['exclusive', 'timeslice', 'mps', 'mig'] },
      smCount: whole('Streaming multiprocessors'),
      memoryMiB: whole('Memory, MiB'),
      usedMemoryMiB: whole('Memory in use, MiB'),
      utilisation: { type: 'number', description: 'Part of the time in which some kernel ran, 0 to 1' },
      contextMiB: whole('Memory that a CUDA context was measured to take, MiB'),
      simulated: yesNo('Whether it is a stand-in'),
      slices: list({ type: 'object' }, 'MIG instances'),
      health: object({ state: text('healthy, cordoned, draining or offline') }),
      functions: list(ref('GpuFunction'), 'Instances of functions; those of others have no names'),
      workloads: list(ref('GpuWorkload'), "Processes that are no functions, as far as they are the caller's to see"),
    },
    ['invoker', 'uuid', 'name', 'type', 'mode', 'smCount', 'memoryMiB', 'health', 'functions', 'workloads'],
  ),
  GpuFunction: object({
    action: text('Fully qualified name of the action; absent for a pre-warmer'),
    namespace: text('The namespace that it runs for'),
    container: text('Name of the container'),
    slice: text('UUID of its MIG instance'),
    share: { type: 'number', description: 'Share of the SMs that its process was started with, 0 to 1' },
    smRequest: { type: 'number', description: 'Part of the SMs that it has whenever it asks, 0 to 1' },
    smLimit: { type: 'number', description: 'Part of the SMs that it may have, 0 to 1' },
    memoryMiB: whole('Memory that is charged for it, MiB'),
    heldMiB: whole('Memory that it was last seen to hold, context included, MiB'),
    launches: object({
      blocks: whole('Kernel blocks that it launched, where kernel tokens count them'),
      waits: whole('Launches that had to wait for tokens'),
      soloRate: { type: 'number', description: 'Blocks in 5 ms when alone; 0 while it is not known' },
      cycles: whole('Launch cycles that its runtime has marked'),
      cycleMs: { type: 'number', description: 'Length of the last one, ms' },
      cycleBatch: whole('Batch size of the last one'),
    }),
    running: whole('Activations that run in it'),
  }),
  GpuWorkload: object(
    {
      id: text('Id'),
      name: text('Name'),
      origin: text('registered, started or discovered'),
      invoker: text('The invoker whose node it is on'),
      device: text('UUID of the device'),
      pid: whole("Its process, by the node's numbers"),
      processStart: whole('When that started, in clock ticks since the boot'),
      since: whole('When it was registered or first seen, epoch milliseconds'),
      memoryMiB: whole('Memory that it may hold or holds, MiB'),
      mpsPercent: whole('Percent of the SMs that one which was started may use'),
      maxDegradation: { type: 'number', description: 'How much slower it may get, 0 to 1' },
      namespace: text('Whose it is; absent for one that was discovered'),
      command: text('What it runs'),
      env: { type: 'object', description: 'What it has to be started with, where it is to be an MPS client' },
    },
    ['id', 'name', 'origin', 'invoker', 'device', 'maxDegradation'],
  ),
  NewGpuWorkload: object(
    {
      name: text('Name'),
      device: text('UUID of the device; the one with most free memory where absent'),
      pid: whole("Its process, by the node's numbers"),
      memoryMiB: whole('Memory that it may hold, MiB'),
      mpsPercent: whole('Percent of the SMs that it may use, 1 to 100'),
      maxDegradation: { type: 'number', description: 'How much slower it may get, 0 to 1; 0.05 where absent' },
      command: text('What it runs'),
      start: yesNo('Whether it is yet to be started as an MPS client'),
    },
    ['name'],
  ),
  GpuLaunch: object(
    {
      action: text("Name of the action, '/NAMESPACE/NAME' or one of the caller's own"),
      devices: list(
        { type: 'string' },
        'UUIDs of the GPUs, or of the MIG instance; without: where the least is given away',
      ),
      mpsPercent: whole('Class of its share, percent of the SMs; without: what the function asks for'),
    },
    ['action'],
  ),
  GpuLaunched: object(
    {
      action: text('Fully qualified name of the action'),
      device: text('UUID of its first device'),
      slice: text('UUID of the MIG instance'),
      share: { type: 'number', description: 'Its share of the SMs, 0 to 1' },
    },
    ['action'],
  ),
  GpuShare: object(
    {
      smRequest: { type: 'number', description: 'Part of the SMs that it has whenever it asks, 0 to 1' },
      smLimit: { type: 'number', description: 'Part of the SMs that it may have, 0 to 1' },
    },
    ['smRequest', 'smLimit'],
  ),
  GpuGeometry: object(
    { profiles: list({ type: 'string' }, "Profiles of its MIG instances, '3g.20gb'; none: the device is not cut") },
    ['profiles'],
  ),
  GpuWish: object(
    {
      wish: text('cordon: no new work; drain: nor anything on it once what runs has ended; uncordon: work again'),
      at: whole('When it was set, epoch ms'),
      uuid: text('The device'),
    },
    ['wish'],
  ),
  GpuWorkloadChanges: object(
    {
      pid: whole("Its process, by the node's numbers"),
      processStart: whole(
        'When that started, in clock ticks since the boot: without it a later one of its number is it, too',
      ),
    },
    ['pid'],
  ),
  GpuQueued: object(
    {
      activationId: text('Id of the activation'),
      action: text('Fully qualified name of the action'),
      namespace: text('The namespace that it runs for'),
      position: whole('Its place in the queue of all namespaces, from 1'),
      waitedMs: whole('How long it has waited, ms'),
      sloMs: whole('From acceptance to result, ms; absent: best effort'),
      memoryMiB: whole('Memory that it needs, MiB'),
      gpus: whole('Devices that it needs'),
      refusals: list({ type: 'string' }, 'Why agents gave it back'),
      rejected: list(ref('GpuRejection'), 'Why it was put nowhere when that was last decided'),
    },
    ['activationId', 'action', 'namespace', 'position', 'waitedMs', 'memoryMiB', 'gpus', 'refusals', 'rejected'],
  ),
  GpuDecision: object(
    {
      at: whole('When it was decided, epoch ms'),
      activationId: text('Id of the activation'),
      action: text('Fully qualified name of the action'),
      namespace: text('The namespace that it runs for'),
      policy: text('The policy that decided'),
      placement: { type: 'object', description: 'Where to, with which share; absent: nowhere' },
      reason: text('Why'),
      rejected: list(ref('GpuRejection'), 'What was not chosen'),
    },
    ['at', 'activationId', 'action', 'namespace', 'policy', 'reason', 'rejected'],
  ),
  GpuLearnedFunction: object(
    {
      function: text('Fully qualified name of the action'),
      version: text('Version that it was seen in; empty: only its processes were seen'),
      gpuType: text('Short name of the model of GPU'),
      mode: text('How that is shared'),
      features: {
        type: 'object',
        description: 'What was measured of it, by name: smUtil, the part of the SMs that it fills; dramUtil',
      },
      fillSource: {
        type: 'string',
        description:
          'What smUtil was measured by: times of the sample at share classes, times of runs, launches counted by kernel tokens, or SM activity',
        enum: ['sample', 'runs', 'launches', 'gpm'],
      },
      batches: list(
        { type: 'object' },
        'By size of batch: soloMs, whether that was measured alone, startMs, runs; slowdown: predicted and measured',
      ),
      heldMiB: whole('Memory that its instances were last seen to hold, at most, MiB'),
    },
    ['function', 'version', 'gpuType', 'mode', 'batches'],
  ),
  GpuQuota: object(
    {
      id: text('Id of the set, for operators'),
      gpuType: text('Short name of the model of GPU'),
      mode: text('How that is shared'),
      driverMajor: whole('Major version of the driver'),
      jobs: list(
        { type: 'object' },
        'Functions with version, and why a search must not run one; those of others have no names',
      ),
      points: list({ type: 'object' }, 'The best first: shares in percent, slowdowns, measurements'),
      search: {
        type: 'object',
        description: 'Its stage, how often it was asked for, the GPU, attempts, why it failed',
      },
    },
    ['gpuType', 'mode', 'jobs', 'points', 'search'],
  ),
  GpuModel: object({
    gpuType: text('Short name of the model of GPU'),
    mode: text('How that is shared'),
    version: whole('Its number, which grows'),
    sampleCount: whole('Runs that it was learned from'),
  }),
  GpuPolicy: object({
    policy: text('Its name, with the changed stages and settings'),
    admission: text('best-effort or refuse: what becomes of tasks that cannot meet their SLO'),
    decides: yesNo('Whether this controller decides about GPUs now'),
    stages: { type: 'object', description: 'The implementation of each stage' },
    settings: { type: 'object', description: 'By stage, the settings in force' },
    functions: whole('Functions of which something was learned'),
    sharedSets: whole('Sets of functions whose shares were measured'),
    models: list(
      object({
        gpuType: text('Short name of the model of GPU'),
        mode: text('How that is shared'),
        version: whole('Its number, which grows'),
        sampleCount: whole('Runs that it was learned from'),
        error: { type: 'number', description: 'Median of |predicted / measured − 1| of runs beside others' },
        runs: whole('Runs that the error is of'),
      }),
      'Predictors that were learned, and the capacity model where none was',
    ),
  }),
  GpuPolicyTrial: object(
    {
      policy: { description: "Name of a policy, or an object that starts from one as in 'gpu.policy'" },
      minutes: whole('Arrivals of the last so many minutes, 1 to 60; 60 where absent'),
      arrivals: list(
        object(
          {
            function: text('Name'),
            atMs: { type: 'number', description: 'When it arrives, ms' },
            soloMs: { type: 'number', description: 'Time alone on a whole GPU, ms' },
            memoryMiB: { type: 'number', description: 'Device memory, MiB' },
            sloMs: { type: 'number', description: 'From arrival to result, ms; absent: best effort' },
            startMs: { type: 'number', description: 'Cold start, ms; 0 where absent' },
            smUtil: { type: 'number', description: 'Part of the SMs that it uses alone, 0 to 1; 1 where absent' },
          },
          ['function', 'atMs', 'soloMs', 'memoryMiB'],
        ),
        'These instead of the recorded ones',
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
        policy: text('Its name, with the changed stages and settings'),
        meanWaitMs: { type: 'number', description: 'From arrival to start, ms' },
        p99WaitMs: { type: 'number', description: 'The 99th percentile of that' },
        meanMs: { type: 'number', description: 'From arrival to result, ms' },
        missed: whole('Arrivals with an SLO that missed it'),
        withSlo: whole('Arrivals with an SLO'),
        refused: whole('Arrivals that were refused'),
        gpuHours: { type: 'number', description: 'Hours in which a GPU held something' },
        problem: text('Why the replay did not end'),
      }),
      'The policy in force, then the one that was tried',
    ),
  }),
  GpuRejection: object({
    what: text('A device, a slice or a node'),
    reason: text('Why it was not chosen'),
    numbers: { type: 'object', description: 'The numbers behind it' },
  }),
} satisfies Record<string, JsonObject>;

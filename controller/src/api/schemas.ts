import type { JsonObject } from '@gpuwhisk/common/json';

const text = (description: string): JsonObject => ({ type: 'string', description });
const whole = (description: string): JsonObject => ({ type: 'integer', description });
const yesNo = (description: string): JsonObject => ({ type: 'boolean', description });
/** A reference; the API documents write it as their format wants. */
const ref = (name: string): JsonObject => ({ $ref: name });
const list = (items: JsonObject, description: string): JsonObject => ({ type: 'array', items, description });
const object = (properties: JsonObject, required: string[] = []): JsonObject => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

const entity = {
  namespace: text('Namespace, and package where it lies in one'),
  name: text('Name'),
  version: text('Semantic version'),
  publish: yesNo('Whether the entity is shared'),
};
const entityFields = Object.keys(entity);
const annotations = { annotations: list(ref('KeyValue'), 'Annotations') };
const parameters = { parameters: list(ref('KeyValue'), 'Parameters') };
const updated = { updated: whole('Time of the last write, epoch milliseconds') };

const ruleTargets = { trigger: ref('PathName'), action: ref('PathName') };
const ruleStatus = { type: 'string', description: 'State of the rule', enum: ['active', 'inactive'] };

const activation = {
  ...entity,
  ...annotations,
  activationId: text('Id: 32 hexadecimal digits'),
  start: whole('Start, epoch milliseconds'),
  end: whole('End, epoch milliseconds'),
  duration: whole('Duration in milliseconds, initialization included'),
  cause: text('Id of the activation that caused this one'),
};

/** The JSON that the API takes and gives, under OpenWhisk's definition names. */
export const schemas = {
  ErrorMessage: object({ error: text('What went wrong'), code: text('Transaction id') }, ['error']),
  /** Without a type, as OpenWhisk's. */
  KeyValue: {
    properties: {
      key: text('Key'),
      value: { description: 'Any JSON value' },
      init: yesNo('Given to the action as environment at initialization only'),
      encryption: text('How the value is encrypted'),
    },
  },
  ActionLimits: object({
    timeout: whole('Time limit in milliseconds'),
    memory: whole('Memory limit in megabytes'),
    logs: whole('Log limit in megabytes'),
    concurrency: whole('Activations that one container may run at once'),
    instances: whole('Containers of the action, at most'),
  }),
  ActionExec: object({
    kind: text("Runtime kind, 'blackbox' or 'sequence'"),
    code: text('Source text, or an archive in base64'),
    image: text("Container image, for kind 'blackbox'"),
    main: text('Entry point'),
    binary: yesNo('Whether the code is an archive; ignored on input'),
    components: list({ type: 'string' }, "Actions, for kind 'sequence'"),
  }),
  ActionExecMeta: object({ binary: yesNo('Whether the code is an archive') }),
  Action: object(
    {
      ...entity,
      exec: ref('ActionExec'),
      ...annotations,
      ...parameters,
      limits: ref('ActionLimits'),
      ...updated,
      binding: text('The binding that the action was read through, where its code is left out'),
    },
    [...entityFields, 'exec', 'limits'],
  ),
  ActionMeta: object(
    { ...entity, exec: ref('ActionExecMeta'), ...annotations, limits: ref('ActionLimits'), ...updated },
    [...entityFields, 'exec', 'limits'],
  ),
  ActionPut: object({
    ...entity,
    exec: ref('ActionExec'),
    ...annotations,
    delAnnotations: list({ type: 'string' }, 'Keys of annotations to remove'),
    ...parameters,
    limits: ref('ActionLimits'),
  }),
  Package: object(
    {
      ...entity,
      ...annotations,
      ...parameters,
      binding: ref('PackageBinding'),
      actions: list(ref('PackageAction'), 'Actions of the package'),
      feeds: list(ref('PackageAction'), 'Feeds of the package'),
      ...updated,
    },
    entityFields,
  ),
  PackagePut: object({ ...entity, ...annotations, ...parameters, binding: ref('PackageBinding') }),
  PackageBinding: object({ namespace: text('Namespace of the package'), name: text('Name of the package') }),
  PackageAction: object({ name: text('Name'), version: text('Semantic version'), ...annotations }, ['name', 'version']),
  Trigger: object(
    {
      ...entity,
      ...annotations,
      ...parameters,
      limits: ref('TriggerLimits'),
      rules: { type: 'object', description: 'By namespace/name of each rule: its action and status' },
      ...updated,
    },
    entityFields,
  ),
  TriggerMeta: object({ ...entity, ...annotations, ...updated }, entityFields),
  TriggerPut: object({ ...entity, ...annotations, ...parameters, limits: ref('TriggerLimits') }),
  TriggerLimits: { type: 'object', description: 'Triggers have no limits' },
  TriggerPayload: { type: 'object', description: 'Arguments of the actions', additionalProperties: true },
  PathName: object({ path: text('Namespace, and package where it lies in one'), name: text('Name') }, ['path', 'name']),
  Rule: object({ ...entity, ...annotations, ...ruleTargets, status: ruleStatus, ...updated }, [
    ...entityFields,
    'trigger',
    'action',
  ]),
  RuleMeta: object({ ...entity, ...annotations, ...ruleTargets, ...updated }, [...entityFields, 'trigger', 'action']),
  RulePut: object({
    ...entity,
    ...annotations,
    trigger: text('Trigger, fully qualified'),
    action: text('Action, fully qualified'),
  }),
  RuleStatus: object({ status: ruleStatus }, ['status']),
  ActionPayload: { type: 'object', description: 'Arguments of the invocation', additionalProperties: true },
  ActivationId: object({ activationId: text('Id of the activation') }, ['activationId']),
  ActivationIds: object({ ids: list(ref('ActivationId'), 'Activation ids') }),
  ActivationBrief: object({ ...activation, statusCode: whole('0 success, 1 to 3 an error') }, [
    ...entityFields,
    'activationId',
    'start',
  ]),
  Activation: object(
    {
      ...activation,
      subject: text('Who invoked'),
      response: ref('ActivationResult'),
      logs: list({ type: 'string' }, 'Lines of standard output and error'),
    },
    [...entityFields, 'subject', 'activationId', 'start', 'response', 'logs'],
  ),
  ActivationLogs: object({ logs: list({ type: 'string' }, 'Lines of standard output and error') }),
  ActivationResult: object({
    status: text('success, application error, action developer error or whisk internal error'),
    result: { description: 'What the action returned' },
    success: yesNo('Whether the status is success'),
    size: whole('Length of the result in bytes, where known'),
  }),
  UserLimits: object({
    invocationsPerMinute: whole('Invocations per minute, at most'),
    concurrentInvocations: whole('Invocations under way, at most'),
    firesPerMinute: whole('Trigger fires per minute, at most'),
    concurrentGpuInvocations: whole('Invocations of actions with a GPU under way, at most'),
    concurrentGpus: whole('GPUs that those under way may ask for together'),
    concurrentGpuMemory: whole('Device memory that those under way may ask for together, MiB'),
    gpuSecondsPerMinute: whole('Seconds of whole GPUs per minute, at most'),
    maxGpuShare: whole('Percent of a GPU that one run may have, at most'),
    warmGpuContainers: whole('Idle containers with a GPU that each invoker keeps, at most'),
    allowedKinds: list({ type: 'string' }, 'Kinds that may be used; all where absent'),
    storeActivations: yesNo('Whether activations are stored'),
    minActionMemory: whole('Megabytes'),
    maxActionMemory: whole('Megabytes'),
    minActionLogs: whole('Megabytes'),
    maxActionLogs: whole('Megabytes'),
    minActionTimeout: whole('Milliseconds'),
    maxActionTimeout: whole('Milliseconds'),
    minActionConcurrency: whole('Activations in one container'),
    maxActionConcurrency: whole('Activations in one container'),
    maxParameterSize: text('Such as 1 MB'),
    maxActionInstances: whole('Containers of one action'),
  }),
  Subject: object(
    {
      subject: text('Name'),
      namespaces: list(ref('NamespaceKey'), 'Namespaces and their keys'),
      blocked: yesNo('Whether its keys are refused'),
    },
    ['subject', 'namespaces', 'blocked'],
  ),
  NamespaceKey: object({
    name: text('Namespace'),
    uuid: text('First half of the key'),
    key: text('Second half of the key, 64 characters'),
    subject: text('Whose the key is'),
  }),
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
      features: { type: 'object', description: 'Parts of the GPU that its processes were seen to use, at most' },
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
  GpuRejection: object({
    what: text('A device, a slice or a node'),
    reason: text('Why it was not chosen'),
    numbers: { type: 'object', description: 'The numbers behind it' },
  }),
  KeyPut: object({
    namespace: text("Namespace; the subject's name where absent"),
    uuid: text('First half of the key; a random one where absent'),
    key: text('Second half of the key, 64 characters; a random one where absent'),
    revoke: yesNo('Replace the key that the subject has for the namespace'),
  }),
  AuthKey: object({ authkey: text('uuid:key') }, ['authkey']),
  Document: { type: 'object', description: 'A document of a database, with _id and _rev' },
  NewDocuments: object({ documents: list({ type: 'object', description: 'A document with _id' }, 'New documents') }, [
    'documents',
  ]),
  CreatedDocuments: object({ created: list({ type: 'boolean' }, 'In the order of the documents') }),
  DocumentRows: object({
    rows: list({ type: 'object', description: 'id, key, value, and doc where asked for' }, 'Rows in order'),
  }),
  LogLines: object({ lines: list({ type: 'string' }, 'Lines of JSON, oldest first') }),
  ApiInfo: object({
    description: text('Name of the API'),
    api_version: text('Version of the API'),
    api_version_path: text('The version in paths'),
    build: text('Date of the build'),
    buildno: text('Number of the build'),
    swagger_paths: { type: 'object', description: 'Where the API is described' },
  }),
} satisfies Record<string, JsonObject>;

/** The name of a schema. */
export type SchemaName = keyof typeof schemas;

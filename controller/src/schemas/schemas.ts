import type { JsonObject } from '@gpuwhisk/common/json';
import { list, object, ref, text, whole, yesNo } from './json-schema.js';
import { activitySchemas } from './activity-schemas.js';
import { gpuFunctionSchemas } from './gpu-function-schemas.js';
import { gpuSchemas } from './gpu-schemas.js';

const entity = {
  namespace: text('Namespace, with the package if there is one'),
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

/** Entities, invocations and activations, under OpenWhisk's definition names. */
const entitySchemas = {
  ErrorMessage: object({ error: text('What went wrong'), code: text('Transaction id') }, ['error']),
  /** No type, as in OpenWhisk. */
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
  PackageMeta: object(
    {
      ...entity,
      ...annotations,
      binding: { description: 'Package that the binding refers to; false if the package is no binding' },
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
      rules: { type: 'object', description: 'Action and status of each rule, by namespace/name' },
      ...updated,
    },
    entityFields,
  ),
  TriggerMeta: object({ ...entity, ...annotations, ...updated }, entityFields),
  TriggerPut: object({ ...entity, ...annotations, ...parameters, limits: ref('TriggerLimits') }),
  TriggerLimits: { type: 'object', description: 'Triggers have no limits' },
  TriggerPayload: { type: 'object', description: 'Arguments of the actions', additionalProperties: true },
  PathName: object({ path: text('Namespace, with the package if there is one'), name: text('Name') }, ['path', 'name']),
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
      subject: text('Subject that invoked'),
      response: ref('ActivationResult'),
      logs: list({ type: 'string' }, 'Lines of standard output and error'),
    },
    [...entityFields, 'subject', 'activationId', 'start', 'response', 'logs'],
  ),
  ActivationLogs: object({ logs: list({ type: 'string' }, 'Lines of standard output and error') }),
  ActivationResult: object({
    status: text('success, application error, action developer error or whisk internal error'),
    result: { description: 'Result of the action' },
    success: yesNo('Whether the status is success'),
    size: whole('Length of the result in bytes, where known'),
  }),
} satisfies Record<string, JsonObject>;

const userLimits = {
  invocationsPerMinute: whole('Invocations per minute, at most'),
  concurrentInvocations: whole('Invocations under way, at most'),
  firesPerMinute: whole('Trigger fires per minute, at most'),
  concurrentGpuInvocations: whole('Invocations of actions with a GPU under way, at most'),
  concurrentGpus: whole('GPUs of all invocations under way, at most'),
  concurrentGpuMemory: whole('Device memory of all invocations under way, at most, MiB'),
  gpuSecondsPerMinute: whole('Seconds of whole GPUs per minute, at most'),
  maxGpuShare: whole('Percent of a GPU that one run may have, at most'),
  warmGpuContainers: whole('Idle containers with a GPU that each invoker keeps, at most'),
  storedMiB: whole('What may be stored, MiB'),
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
};

/** Subjects, their keys and limits, operators' views, and the API itself. */
const adminSchemas = {
  UserLimits: object(userLimits),
  NamespaceLimits: object({
    ...userLimits,
    maxActionCodeBytes: whole('Largest code of an action: the bytes of its file, not of its base64'),
    storedBytes: whole('What is stored of the namespace, bytes; absent until it is known'),
  }),
  Retirement: object({
    name: text('Name of the retired process'),
    number: whole('Number of the retired process'),
    moved: whole('Activations moved to other processes'),
    stopped: whole('Activations that may have begun, recorded as stopped'),
    isSettled: yesNo('Whether the retirement is complete'),
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
    subject: text('Subject that owns the key'),
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
  CreatedDocuments: object({ created: list({ type: 'boolean' }, 'Whether each document was created, in their order') }),
  DocumentRows: object({
    rows: list({ type: 'object', description: 'id, key, value, and doc where asked for' }, 'Rows in order'),
  }),
  RefusedRecord: object({
    id: text('namespace/activationId'),
    refusedAt: whole('Time of the refusal, ms since the epoch'),
    reason: text('Error of the store'),
    bytes: whole('Approximate size of the record'),
  }),
  LogLines: object({ lines: list({ type: 'string' }, 'Lines of JSON, oldest first') }),
  ApiInfo: object({
    description: text('Name of the API'),
    api_version: text('Version of the API'),
    api_version_path: text('The version in paths'),
    build: text('Date of the build'),
    buildno: text('Number of the build'),
    swagger_paths: { type: 'object', description: 'Path of the API description' },
  }),
} satisfies Record<string, JsonObject>;

/** The JSON schemas of the API's requests and answers. */
export const schemas = { ...entitySchemas, ...adminSchemas, ...gpuSchemas, ...gpuFunctionSchemas, ...activitySchemas };

/** The name of a schema. */
export type SchemaName = keyof typeof schemas;

import type { JsonObject } from '@gpuwhisk/common/json';
import { list, object, ref, text, whole, yesNo } from './json-schema.js';

/** Subjects, their keys and limits, what operators see, and the API itself. */
export const adminSchemas = {
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
  Retirement: object({
    name: text('Of the process that never comes back'),
    number: whole('Which it had'),
    moved: whole('Activations that run elsewhere'),
    stopped: whole('Activations that it may have begun, recorded as stopped'),
    isSettled: yesNo('Whether nothing is left'),
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
  RefusedRecord: object({
    id: text('namespace/activationId'),
    refusedAt: whole('When it was set aside, ms since the epoch'),
    reason: text("The store's words"),
    bytes: whole('About what the record takes'),
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

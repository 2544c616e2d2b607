/** Limits that a namespace may override; every field is optional. Memory in MB (MiB), times in ms. */
export interface UserLimits {
  invocationsPerMinute?: number;
  concurrentInvocations?: number;
  firesPerMinute?: number;
  allowedKinds?: string[];
  storeActivations?: boolean;
  minActionMemory?: number;
  maxActionMemory?: number;
  minActionLogs?: number;
  maxActionLogs?: number;
  minActionTimeout?: number;
  maxActionTimeout?: number;
  minActionConcurrency?: number;
  maxActionConcurrency?: number;
  maxParameterSize?: string;
  maxPayloadSize?: string;
  truncationSize?: string;
  /** These three are kept and not acted on. */
  warmedContainerKeepingCount?: number;
  warmedContainerKeepingTimeout?: string;
  maxActionInstances?: number;
  /** Ours: activations with a GPU that may be in flight, the devices and the device memory (MiB) that they ask for together. */
  concurrentGpuInvocations?: number;
  concurrentGpus?: number;
  concurrentGpuMemory?: number;
  /** Ours: seconds of whole GPUs that its functions may have in a calendar minute. */
  gpuSecondsPerMinute?: number;
  /** Ours: percent of a GPU's SMs that one run may have, 10 to 100; containers with a GPU that each invoker keeps warm. */
  maxGpuShare?: number;
  warmGpuContainers?: number;
}

/** Who calls, as messages carry it: one identity is one namespace with one key. */
export interface Identity {
  subject: string;
  namespace: { name: string; uuid: string };
  /** `api_key` is `uuid:key`. */
  authkey: { api_key: string };
  rights: string[];
  limits: UserLimits;
}

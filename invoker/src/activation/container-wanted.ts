import { ownerOf } from '@gpuwhisk/common/messages';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { ContainerSpec } from '../containers/container-factory.js';
import { grantKey, grantOf } from '../gpu-agent/gpu-runs.js';
import type { RunnableAction } from './action-loader.js';

/** What the pool is to know of an activation before it finds it a container. */
export interface ContainerWanted {
  /** Activations with the same key may share a container. */
  key: string;
  namespace: string;
  /** As PoolJob.codeOf. */
  codeOf: string;
  spec: ContainerSpec;
  /** How many may run as one. */
  batch: number;
}

/** What the last caller of an action wanted, where it wanted nothing of its own. */
const usual = new WeakMap<RunnableAction, ContainerWanted & { executeOnly: boolean }>();

/** The container that an activation of the action needs. */
export function containerWanted(message: ActivationMessage, action: RunnableAction): ContainerWanted {
  if (message.initArgs.length > 0 || message.gpuNeed !== undefined || message.gpu !== undefined) {
    return wantedBy(message, action);
  }
  const before = usual.get(action);
  const executeOnly = message.executeOnly === true;
  if (before?.namespace === message.user.namespace.name && before.executeOnly === executeOnly) return before;
  const wanted = { ...wantedBy(message, action), executeOnly };
  usual.set(action, wanted);
  return wanted;
}

function wantedBy(message: ActivationMessage, action: RunnableAction): ContainerWanted {
  const { action: reference, initArgs, revision, user } = message;
  // What a container got at its initialization may differ from binding to binding.
  const binding = initArgs.length > 0 ? (reference.binding ?? '') : '';
  const namespace = user.namespace.name;
  const gpu = message.gpu && grantOf(message.gpu);
  const place = gpu === undefined ? '' : ` ${grantKey(gpu)}`;
  const batch = message.gpuNeed?.batch ?? 1;
  // A batch has one caller's rights.
  const caller = batch === 1 ? '' : ` ${user.subject}`;
  const rights = message.executeOnly === true ? ' execute-only' : '';
  return {
    key: `${namespace} ${reference.path}/${reference.name} ${revision} ${binding}${place}${caller}${rights}`,
    namespace,
    codeOf: `${ownerOf(reference.path)}${rights}`,
    batch,
    spec: {
      kind: action.runtime,
      memoryMiB: action.limits.memory,
      concurrency: action.limits.concurrency,
      requirements: action.requirements,
      imports: action.warm.imports,
      cuda: action.warm.cuda,
      ...(gpu !== undefined && { gpu }),
    },
  };
}

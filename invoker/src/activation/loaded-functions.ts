import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { SavedStart } from '@gpuwhisk/common/prewarmer';
import { withoutLearned } from '../containers/container-factory.js';
import type { CallOutcome, Container, ContainerSpec } from '../containers/container-factory.js';
import type { SnapshotWish } from '../pool/snapshots.js';
import { fullyQualifiedName } from './action-loader.js';
import type { RunnableAction } from './action-loader.js';
import { snapshotRequest } from './container-requests.js';
import type { InvokerContext } from './invoker-context.js';

/** A load of an action's code into a container. */
interface LoadedFunction {
  job: { key: string; namespace: string; spec: ContainerSpec };
  message: ActivationMessage;
  action: RunnableAction;
  container: Container;
  outcome: CallOutcome & { type: 'ok' };
  initMs: number;
}

/** Learns from a load, and has a snapshot made of a function that wants that. Returns what was saved, or undefined if nothing. */
export function noteLoaded(context: InvokerContext, load: LoadedFunction): SavedStart | undefined {
  const { job, action, container, outcome } = load;
  const wish = wishOf(load);
  context.snapshots?.loaded(`${job.namespace} ${fullyQualifiedName(action)}`, action.revision, wish);
  if (container.restoredMs !== undefined) return { savedMs: container.restoredMs, savedBy: 'restored' };
  return context.learned?.loaded(job, action, container, outcome.imports);
}

/** The wish for a snapshot of a function whose annotation, or own function `after_restore`, asks for one; undefined without. */
function wishOf({ job, message, action, container, outcome, initMs }: LoadedFunction): SnapshotWish | undefined {
  const { warm } = action;
  const isWanted = warm.learns !== false && (warm.snapshot ?? outcome.restores === true);
  if (!isWanted || container.restoredMs !== undefined || message.sample !== undefined) return undefined;
  const { key, namespace } = job;
  const unfit = unfitOf(job.spec, message);
  return {
    key,
    of: `${namespace} ${fullyQualifiedName(action)}`,
    revision: action.revision,
    action: fullyQualifiedName(action),
    namespace,
    spec: withoutLearned(job.spec),
    loadMs: initMs,
    init: async () => snapshotRequest(action, await action.code(namespace), namespace),
    isCurrent: () => action.isCurrent(),
    ...(unfit !== undefined && { unfit }),
  };
}

/** Why a function can have no snapshot; undefined if it may. */
function unfitOf(spec: ContainerSpec, { initArgs }: ActivationMessage): string | undefined {
  if (!spec.kind.startsWith('python:')) return `Functions of kind ${spec.kind} have no snapshots.`;
  if (spec.gpu !== undefined || spec.cuda || spec.training !== undefined) return 'It has a GPU or a CUDA context.';
  if (spec.concurrency > 1) return 'It takes several runs at once.';
  return initArgs.length > 0 ? 'It has parameters that are set before its code is loaded.' : undefined;
}

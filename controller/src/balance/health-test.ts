import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionDocument } from '@gpuwhisk/common/entities/action';
import { newActivationId } from '@gpuwhisk/common/ids';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';

/** Dependencies of openHealthTest. */
export interface HealthTestDependencies {
  bus: MessageBus;
  store: ArtifactStore;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** The controller's number. */
  instance: number;
  /** The kind of the action, and the memory that it gets, MiB. */
  kind: string;
  memoryMiB: number;
}

const namespace = 'whisk.system';
const transactionId = 'sid_invokerHealth';

/** Stores the action that tells whether an invoker works, and gives what sends one activation of it to an invoker. */
export async function openHealthTest(dependencies: HealthTestDependencies): Promise<(invoker: number) => void> {
  const { bus, clock, random, logger, instance } = dependencies;
  const name = `invokerHealthTestAction${instance}`;
  const revision = await storeAction(dependencies, name);
  return (invoker) => {
    const message: ActivationMessage = {
      transid: [transactionId, clock.now()],
      action: { path: namespace, name, version: '0.0.1' },
      revision,
      user: {
        subject: namespace,
        namespace: { name: namespace, uuid: namespace },
        authkey: { api_key: '' },
        rights: [],
        limits: { storeActivations: false },
      },
      activationId: newActivationId(clock.now(), random),
      rootControllerIndex: { asString: String(instance), instanceType: 'controller' },
      blocking: true,
      content: {},
      initArgs: [],
      lockedArgs: {},
    };
    try {
      bus.send(`invoker${invoker}`, message as unknown as JsonObject);
    } catch (error) {
      logger.error({ invoker, error: String(error) }, 'an invoker could not be tested');
    }
  };
}

/** Gives the revision of the action, which may have been stored before the restart. */
async function storeAction({ store, clock, kind, memoryMiB }: HealthTestDependencies, name: string): Promise<string> {
  const action: WhiskAction = {
    namespace,
    name,
    exec: { kind, code: 'function main(params) { return params; }', binary: false },
    parameters: [],
    limits: { timeout: 60_000, memory: memoryMiB, logs: 0, concurrency: 1 },
    version: '0.0.1',
    publish: false,
    annotations: [],
    updated: clock.now(),
    revision: '',
  };
  try {
    const { _rev: known } = await store.get('whisks', `${namespace}/${name}`);
    action.revision = String(known);
  } catch (error) {
    if (!(error instanceof NoDocumentError)) throw error;
  }
  try {
    return await store.put('whisks', actionDocument(action));
  } catch (error) {
    if (!(error instanceof DocumentConflictError)) throw error;
    // Another start of this controller was quicker.
    return String((await store.get('whisks', `${namespace}/${name}`))._rev);
  }
}

import { ConfigError, withoutSecrets } from '@gpuwhisk/common/config';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import { InstanceIdError } from '@gpuwhisk/common/state/instance-ids';
import { StoreOpenError } from '@gpuwhisk/common/store/artifact-store';
import { sleep, systemClock } from '@gpuwhisk/common/system/clock';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import { grantInvokerAccess } from '@gpuwhisk/engines/couchdb/invoker-access';
import { KafkaUnavailableError } from '@gpuwhisk/engines/kafka/kafka-errors';
import { IsolationError } from '@gpuwhisk/invoker/containers/container-factory';
import { EngineError } from '@gpuwhisk/invoker/containers/docker/engine-client';
import { DataFolderError } from '../process/data-lock.js';
import { raiseProcessorPriority, notifyReady } from '../process/service.js';
import { startController } from './controller-process.js';
import { parseClusterCommand, usage } from './flags.js';
import type { DatabasesConfig } from './flags.js';
import { startInvoker } from './invoker-process.js';
import type { ClusterProcess } from './open-cluster.js';

/** Time to wait for a server that starts together with this process, ms. */
const waitMs = 60_000;
const againMs = 500;

/**
 * Makes missing databases and views, and the account of invokers; existing ones stay. Resolves with a line that reports
 * this; rejects with StoreOpenError after a minute of tries.
 */
export async function makeDatabases({ couchdb, invoker }: DatabasesConfig): Promise<string> {
  const clock = systemClock;
  const untilMs = clock.monotonicMs() + waitMs;
  for (;;) {
    try {
      const store = await openCouchdbStore({ ...couchdb, clock });
      await store.close();
      const changed = await grantInvokerAccess({ ...couchdb, ...invoker, clock });
      return `The databases ${couchdb.prefix}* are there; the account ${invoker.user} ${changed ? 'was made' : 'is'} as it should be.`;
    } catch (error) {
      if (!(error instanceof StoreOpenError) || clock.monotonicMs() > untilMs) throw error;
    }
    await sleep(clock, againMs);
  }
}

function stopOnSignals(serving: ClusterProcess, drainMs: number): void {
  let stopping = false;
  const stop = (): void => {
    if (stopping) process.exit(130);
    stopping = true;
    serving.close(drainMs).then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(`It did not stop cleanly: ${String(error)}`);
        process.exit(1);
      },
    );
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
}

function explain(error: unknown): string {
  const told = [
    ConfigError,
    DataFolderError,
    EngineError,
    IsolationError,
    InstanceIdError,
    StoreOpenError,
    StateUnavailableError,
    KafkaUnavailableError,
  ];
  if (told.some((type) => error instanceof type)) return (error as Error).message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function main(): Promise<void> {
  try {
    const command = parseClusterCommand(process.argv.slice(2), process.env);
    if (command.type === 'help') console.log(usage);
    else if (command.type === 'print-config') console.log(JSON.stringify(withoutSecrets(command.config), null, 2));
    else if (command.type === 'databases') console.log(await makeDatabases(command.config));
    else {
      if (command.role === 'invoker') raiseProcessorPriority();
      const serving = await (command.role === 'controller' ? startController : startInvoker)(command.config);
      stopOnSignals(serving, command.config.drainMs);
      console.log(serving.line);
      // The process serves all the same: a unit that waits for the notice ends the start by itself.
      await notifyReady(process.env).catch((error: unknown) =>
        console.error(`systemd was not told that it serves: ${String(error)}`),
      );
    }
  } catch (error) {
    console.error(explain(error));
    process.exit(1);
  }
}

void main();

import type { Clock } from '@gpuwhisk/common/system/clock';
import type { ConnectedContainer } from '../connected-container.js';
import type { RuntimeLaunch } from '../../runtimes/runtime-catalog.js';
import { deferred } from './connection.js';
import { FramedConnection } from './framed-connection.js';
import { HttpConnection } from './http-connection.js';
import type { SandboxProcess } from './launcher.js';
import type { LogCollector } from './log-collector.js';

const startTimeoutMs = 30_000;

/** A process that is to become a container. */
export interface StartingRuntime {
  container: ConnectedContainer;
  started: SandboxProcess;
  logs: LogCollector;
  clock: Clock;
  protocol: RuntimeLaunch['protocol'];
  /** The sandbox's address, which a runtime that speaks HTTP is reached at. */
  host: string;
  hasLauncher: boolean;
}

/** Connects the container. Resolves with why the runtime did not start, or undefined once it did. */
export function connectRuntime(starting: StartingRuntime): Promise<string | undefined> {
  const { container, started, logs, clock, protocol, host, hasLauncher } = starting;
  const outcome = deferred<string | undefined>();
  let ready = !hasLauncher;
  let greeted = protocol === 'http';
  const progress = (): void => {
    if (ready && greeted) outcome.resolve(undefined);
  };
  const framed = new FramedConnection(started.socket, logs, clock, {
    hello: () => {
      greeted = true;
      progress();
    },
    launcher: (text) => {
      if (text !== 'ready') {
        outcome.resolve(text.split('\n').slice(1).join(': '));
        return;
      }
      ready = true;
      progress();
    },
    broken: (reason) => {
      // The launcher closes the socket of a runtime that speaks HTTP once it has reported.
      if (protocol === 'http' && ready) return;
      outcome.resolve(reason);
      void container.destroy();
    },
  });
  const broken = (): void => void container.destroy();
  container.connect(protocol === 'framed' ? framed : new HttpConnection(host, logs, clock, broken));
  void container.exited.then(() => outcome.resolve('it ended at once'));
  const timer = clock.setTimer(startTimeoutMs, () => outcome.resolve(`it was not ready within ${startTimeoutMs} ms`));
  void outcome.promise.then(() => timer.cancel());
  return outcome.promise;
}

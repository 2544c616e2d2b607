import { realpathSync } from 'node:fs';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError, withoutSecrets } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { guest } from '@gpuwhisk/common/entities/identity';
import { StoreOpenError } from '@gpuwhisk/common/store/artifact-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { KafkaUnavailableError } from '@gpuwhisk/engines/kafka/kafka-errors';
import { IsolationError } from '@gpuwhisk/invoker/containers/container-factory';
import { EngineError } from '@gpuwhisk/invoker/containers/docker/engine-client';
import { hasDocumentation } from '@gpuwhisk/server/node/sites';
import { checkDataFormat, restoreBackup } from '@gpuwhisk/server/process/data-format';
import { DataFolderError, lockDataFolder } from '@gpuwhisk/server/process/data-lock';
import { notifyReady, raiseProcessorPriority } from '@gpuwhisk/server/process/service';
import { parseCommand, usage } from './flags.js';
import type { AccountLimits } from './identities.js';
import { startPlatform } from './platform.js';
import type { Platform } from './platform.js';

const hello = 'examples/hello/hello.js';

/** The path without links; undefined if nothing is there. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** The prefix of our commands, and the path of an example, as the user of this server types them. */
function commandPaths(): { bin: string; example: string } {
  const [, program = ''] = process.argv;
  // In a clone: npm start.
  if (basename(program) !== 'gpuwhisk') return { bin: './bin/', example: hello };
  const own = realPathOf(program);
  // npx has a PATH of its own, which its user has not.
  const folders = (process.env.PATH ?? '').split(delimiter).filter((one) => !one.includes('node_modules'));
  const isOnPath = folders.some((one) => realPathOf(join(one, 'gpuwhisk')) === own);
  const example = fileURLToPath(new URL(`../../${hello}`, import.meta.url));
  return { bin: isOnPath ? '' : `${dirname(program)}/`, example };
}

function greet(platform: Platform): void {
  const key = platform.wellKnownAccounts ? `${guest.uuid}:${guest.key}` : 'YOUR_KEY';
  const { bin, example } = commandPaths();
  const wsk = `${bin}wsk --apihost ${platform.url} --auth ${key}`;
  const lines = [
    `gpuwhisk is ready at ${platform.url}`,
    ...(platform.consoleUrl === undefined
      ? []
      : [
          `Its console is at ${platform.consoleUrl}/console`,
          ...(hasDocumentation() ? [`Its documentation is at ${platform.consoleUrl}/docs`] : []),
        ]),
    ...(platform.gatewayUrl === undefined ? [] : [`APIs that it serves are at ${platform.gatewayUrl}/api/...`]),
    ...(platform.gpus === undefined ? [] : [platform.gpus]),
    ...platform.inert.map((line) => `  without effect: ${line}`),
    ...platform.notes.map((note) => `  note: ${note}`),
    '',
    platform.wellKnownAccounts
      ? 'Create and invoke a function:'
      : 'Create and invoke a function, with a key from the database:',
    `  ${wsk} action create hello ${example}`,
    `  ${wsk} action invoke hello --result --param name you`,
    '',
    `Administer it with ${bin}wskadmin; ${bin}gpuwhisk operator-key shows the operator's key.`,
    '',
    'Ctrl-C stops.',
  ];
  console.log(lines.join('\n'));
}

/**
 * Two SIGINTs within this time count as one, ms: npm passes on the Ctrl-C that the terminal has sent to every process.
 */
const sameSignalMs = 500;

/** Stops the platform on a signal, as soon as its start is over; returns whether a signal has come. */
function stopOnSignals(starting: Promise<Platform>, drainMs: number): () => boolean {
  let stoppingAtMs: number | undefined;
  const stop = (): void => {
    if (stoppingAtMs !== undefined) {
      if (systemClock.monotonicMs() - stoppingAtMs > sameSignalMs) process.exit(130);
      return;
    }
    stoppingAtMs = systemClock.monotonicMs();
    console.log(`Stopping; running activations have ${drainMs / 1000} seconds. Again to stop at once.`);
    void starting.then(
      (platform) =>
        platform.close(drainMs).then(
          () => process.exit(0),
          (error: unknown) => {
            console.error(`The platform did not stop cleanly: ${String(error)}`);
            process.exit(1);
          },
        ),
      () => undefined, // The caller that awaits the start reports the error.
    );
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  return () => stoppingAtMs !== undefined;
}

async function serve(config: Config, accountLimits: AccountLimits): Promise<void> {
  raiseProcessorPriority();
  // The start begins after the signal handlers are installed.
  const starting = Promise.resolve().then(() =>
    startPlatform({ ...config, dataDir: resolve(config.dataDir) }, { accountLimits }),
  );
  const isStopping = stopOnSignals(starting, config.drainMs);
  const platform = await starting;
  if (isStopping()) return;
  greet(platform);
  // The process serves all the same: a unit that waits for the notice ends the start by itself.
  await notifyReady(process.env).catch((error: unknown) =>
    console.error(`systemd was not told that it serves: ${String(error)}`),
  );
}

/** Puts back the data of before a change of format; returns a line about it. Throws DataFolderError. */
function restore(folder: string): string {
  const unlock = lockDataFolder(folder);
  try {
    return restoreBackup(folder);
  } finally {
    unlock();
  }
}

function explain(error: unknown): string {
  const told = [ConfigError, DataFolderError, IsolationError, EngineError, KafkaUnavailableError, StoreOpenError];
  if (told.some((type) => error instanceof type)) return (error as Error).message;
  const { code, port, address } = error as { code?: string; port?: number; address?: string };
  if (code === 'EADDRINUSE') return `Port ${port} of ${address} is in use; choose another with --port.`;
  if (code === 'EACCES' && port !== undefined)
    return `Port ${port} of ${address} may not be used by this user; choose another with --port.`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function main(): Promise<void> {
  try {
    const command = parseCommand(process.argv.slice(2), process.env);
    if (command.type === 'help') console.log(usage);
    else if (command.type === 'print-config') console.log(JSON.stringify(withoutSecrets(command.config), null, 2));
    else if (command.type === 'check-data') checkDataFormat(resolve(command.config.dataDir));
    else if (command.type === 'restore-backup') console.log(restore(resolve(command.config.dataDir)));
    else await serve(command.config, command.accountLimits);
  } catch (error) {
    console.error(explain(error));
    process.exit(1);
  }
}

void main();

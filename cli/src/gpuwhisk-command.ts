import { runBackup } from './backup/run.js';
import { WskError } from './errors.js';
import { UsageError } from './migrate/options.js';
import { runMigrate } from './migrate/run.js';
import { cliVersion } from './version.js';

const usage = `usage: gpuwhisk COMMAND ...

  migrate     copy everything from an OpenWhisk into this platform
  backup      write what a CouchDB holds of this platform into a file
  restore     write a backup into a CouchDB
  controller  serve the API of a cluster
  invoker     run a cluster's actions on this machine
  --version   the version

gpuwhisk COMMAND --help says more.
`;

/** Runs one command line, without the leading `node gpuwhisk`, and returns its exit code: 0, or 1. */
export async function runGpuwhisk(commandLine: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const [command, ...words] = commandLine;
  try {
    switch (command) {
      case '--version':
        console.log(`gpuwhisk ${cliVersion()}`);
        return 0;
      case undefined:
      case '--help':
      case '-h':
        process.stdout.write(usage);
        return 0;
      case 'migrate':
        return await runMigrate(words, environment);
      case 'backup':
      case 'restore':
        return await runBackup(command, words, environment);
      default:
        throw new UsageError(`there is no command '${command}'`);
    }
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof WskError)) throw error;
    const help = ['migrate', 'backup', 'restore'].includes(command ?? '') ? `gpuwhisk ${command}` : 'gpuwhisk';
    process.stderr.write(
      `error: ${error.message}\n${error instanceof UsageError ? `Run '${help} --help' for usage.\n` : ''}`,
    );
    return 1;
  }
}

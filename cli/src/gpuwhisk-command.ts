import { parseArgs } from 'node:util';
import { runAction } from './action-versions.js';
import { runBackup } from './backup/run.js';
import { messageOf, WskError } from './errors.js';
import { runMigrate, UsageError } from './migrate/run.js';
import { printSchema } from './schema.js';
import { cliVersion, dataFolderOf, readOperatorKey } from './settings.js';

const operatorKeyHelp = `usage: gpuwhisk operator-key [--data DIR]

Prints the key, UUID:SECRET, of /api/v1/admin and other routes for operators. The standalone server makes it at its first
start and keeps it in operator.key of its data folder (DIR, else GPUWHISK_DATA_DIR, else .gpuwhisk), for its own user to
read. A new one is made at the next start once the file is deleted.
`;

const usage = `usage: gpuwhisk COMMAND ...

  action        list the versions of an action, and return to one
  dev           run an action, and again after each save
  deploy        send an action, or what manifest.yaml describes
  schema        print a JSON schema of manifests or annotation gpu, or types for actions
  migrate       copy everything from an OpenWhisk into this platform
  backup        write what a CouchDB holds of this platform into a file
  restore       write a backup into a CouchDB
  serve         run the platform on this machine
  controller    serve the API of a cluster
  invoker       run a cluster's actions on this machine
  databases     make what a cluster needs in CouchDB
  operator-key  show the key that administers this machine's standalone server
  --version     the version

gpuwhisk COMMAND --help says more.
`;

/** Commands with a help of their own. */
const withHelp = ['action', 'dev', 'deploy', 'schema', 'migrate', 'backup', 'restore', 'operator-key'];

/** Throws UsageError and WskError. */
function showOperatorKey(words: readonly string[], environment: NodeJS.ProcessEnv): number {
  const { help, data = dataFolderOf(environment) } = operatorKeyOptions(words);
  if (help === true) {
    process.stdout.write(operatorKeyHelp);
    return 0;
  }
  try {
    console.log(readOperatorKey(data));
    return 0;
  } catch (error) {
    throw new WskError(`There is no operator's key to be read in '${data}': ${messageOf(error)}`);
  }
}

function operatorKeyOptions(words: readonly string[]): { data?: string | undefined; help?: boolean | undefined } {
  try {
    const options = { data: { type: 'string' }, help: { type: 'boolean', short: 'h' } } as const;
    return parseArgs({ args: [...words], options }).values;
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

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
      case 'action':
        return await runAction(words);
      case 'dev':
        return await (await import('./dev/run.js')).runDev(words);
      case 'deploy':
        return await (await import('./dev/deploy.js')).runDeploy(words);
      case 'schema':
        return printSchema(words);
      case 'migrate':
        return await runMigrate(words, environment);
      case 'backup':
      case 'restore':
        return await runBackup(command, words, environment);
      case 'operator-key':
        return showOperatorKey(words, environment);
      default:
        throw new UsageError(`there is no command '${command}'`);
    }
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof WskError)) throw error;
    const help = withHelp.includes(command ?? '') ? `gpuwhisk ${command}` : 'gpuwhisk';
    process.stderr.write(
      `error: ${error.message}\n${error instanceof UsageError ? `Run '${help} --help' for usage.\n` : ''}`,
    );
    return 1;
  }
}

import { createClient } from '../client/client.js';
import { usageError } from '../errors.js';
import { deploy } from '../project/deploy.js';
import type { Deployer } from '../project/deployer.js';
import { fetchRuntimes } from '../project/runtimes.js';
import { run } from '../run.js';
import { stdout } from '../terminal.js';
import { deployHelp, readDeployOptions } from './options.js';
import { readTarget, targetAt } from './target.js';

/** Runs `gpuwhisk deploy` and returns its exit code. Throws UsageError and WskError. */
export async function runDeploy(words: readonly string[]): Promise<number> {
  const options = readDeployOptions(words);
  if (options === undefined) {
    process.stdout.write(deployHelp);
    return 0;
  }
  const { path, settings, parameters } = options;
  if (path === undefined) return run(['project', 'deploy', ...words]);
  const target = targetAt(path);
  if (settings.auth === '') throw usageError('Authorization key is not configured (--auth is required)');
  const client = createClient(settings, 'off');
  // As 'wsk project deploy' without --verbose.
  const warn = (): void => undefined;
  const deployer: Deployer = { client, settings, namespace: '_', info: () => undefined, warn };
  const compose = { namespace: '_', strict: false, commandLine: parameters, projectName: '', warn };
  const { plan, name } = await readTarget(target, { ...compose, runtimes: await fetchRuntimes(client) });
  await deploy(plan, deployer, () => Promise.resolve());
  stdout.print(`${stdout.ok} deployed action ${stdout.bold(name)}\n`);
  return 0;
}

// The installation of the npm packages that an action's archive names, in a sandbox, without their scripts.
import { createHash } from 'node:crypto';
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { ProvisioningError } from '../containers/container-factory.js';
import type { NpmPackages } from '../containers/container-factory.js';
import { bindsFor, JobLimitError } from '../containers/runtime-launch.js';
import type { Bind, RunJob } from '../containers/runtime-launch.js';
import { fillFolder, isThere } from '../host/partial-folders.js';
import { findOnPath, ProgramError, runProgram } from '../host/programs.js';
import { removeTree } from '../host/trees.js';
import { registryCredentials } from './npm-credentials.js';

const installTimeoutMs = 600_000;
const settingsTimeoutMs = 30_000;
const maxFiles = 300_000;
/** Memory of the sandbox that installs, without its files on the disk. */
const memoryMiB = 1024;
/** npm's cache and its logs, inside the folder that is filled. */
const scratch = '.scratch';
/** Folder inside the sandbox for the file that setting `cafile` names. */
const inside = '/run/npm';

/** Settings of an installation. */
interface NpmInstallation {
  run: RunJob;
  /** Bound on the bytes of a set of packages, including npm's downloads. */
  maxBytes: number;
  runtimesDir: string;
}

/** The name of the folder for these packages, which depend on the machine where they name programs of their own. */
export function npmFolderName({ key }: NpmPackages): string {
  return createHash('sha256').update(`npm ${process.platform} ${process.arch} ${key}`).digest('hex');
}

/**
 * The folder under `root` whose `node_modules` has the packages, and whether this call installed them. They come from the
 * operator's registry and are unpacked in a sandbox; none of their code runs there. Rejects with ProvisioningError, whose message
 * says what to do; it is `byAction` if npm refused the packages or they exceed a bound.
 */
export async function installNpm(
  root: string,
  npm: NpmPackages,
  installation: NpmInstallation,
): Promise<{ folder: string; isNew: boolean }> {
  const folder = join(root, npmFolderName(npm));
  try {
    return { folder, isNew: await fillFolder(folder, (partial) => install(npm, partial, installation)) };
  } catch (error) {
    if (error instanceof JobLimitError) throw failed(`${error.message}.`, error.byJob);
    if (!(error instanceof ProgramError)) throw error;
    throw failed(reasonOf(error, folder), isByAction(error));
  }
}

const remedy = "Run 'npm install' and zip the folder node_modules with the code.";

function failed(reason: string, byAction: boolean): ProvisioningError {
  const text = `${reason} ${remedy}`;
  return new ProvisioningError(text, text, byAction);
}

/** Errors about the packages themselves, as runtimes/nodejs/install-packages.cjs tells them. */
const ofPackages = /^npm error (E404|ETARGET|ERESOLVE|EUSAGE|EINTEGRITY|EINVALID\w+|EUNSUPPORTED\w*|EJSONPARSE) /;

function isByAction({ errorLines }: ProgramError): boolean {
  return errorLines.some((line) => ofPackages.test(line));
}

/** The last error in one sentence. */
function reasonOf({ lastLine }: ProgramError, folder: string): string {
  const told = lastLine.replace(/^npm error /, '').replaceAll(folder, 'the archive');
  return `npm: ${told}${/[.!?]$/.test(told) ? '' : '.'}`;
}

async function install(
  npm: NpmPackages,
  folder: string,
  { run, maxBytes, runtimesDir }: NpmInstallation,
): Promise<void> {
  const files = await npm.files();
  if ('problem' in files) throw failed(`${files.problem}.`, true);
  const program = await findNpmScript();
  if (program === undefined) throw failed('This machine has no npm to install them with.', false);
  const { env, binds } = await npmSettings(program);
  await writeFile(join(folder, 'package.json'), files.manifest);
  if (files.lock !== undefined) await writeFile(join(folder, 'package-lock.json'), files.lock);
  await mkdir(join(folder, scratch));
  const node = await realpath(process.execPath);
  const guest = join(runtimesDir, 'nodejs', 'install-packages.cjs');
  const options = [
    ...['--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', '--no-update-notifier'],
    ...['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-timeout=30000', `--prefix=${folder}`],
    `--cache=${join(folder, scratch)}`,
    // Packages of the registry alone: others would be fetched by a program that is not there.
    '--git=/bin/false',
  ];
  const verb = files.lock === undefined ? ['install', '--no-package-lock'] : ['ci'];
  await run({
    command: [node, guest, program, ...verb, ...options],
    binds: [...bindsFor([node, guest, dirname(dirname(program))]), ...binds],
    env,
    folder,
    target: folder,
    maxBytes,
    maxFiles,
    memoryMiB,
    timeoutMs: installTimeoutMs,
  });
  await removeTree(join(folder, scratch));
}

/** The script of the npm beside this Node.js, or of the one on the PATH; undefined if there is none. */
async function findNpmScript(): Promise<string | undefined> {
  const folders = [dirname(process.execPath), process.env.PATH ?? ''].join(':');
  return (await findOnPath('npm', folders)).find((path) => basename(path) === 'npm-cli.js');
}

/** Names of the platform's environment variables about connections, which npm gets. */
const passed = /^(https?_proxy|no_proxy|all_proxy|node_extra_ca_certs)$/i;
/** The operator's settings of npm that it gets, besides tokens and passwords of these registries. */
const registrySetting = /^(registry|@[\w.~-]+:registry)$/;
const settings = /^(registry|@[\w.~-]+:registry|proxy|https-proxy|noproxy|strict-ssl|cafile|ca)$/;

/** The operator's settings for an npm in a sandbox, as environment and binds. Rejects with ProgramError if npm does not start. */
async function npmSettings(program: string): Promise<{ env: Record<string, string>; binds: Bind[] }> {
  const listed = await runProgram(process.execPath, [program, 'config', 'list', '--json'], {
    timeoutMs: settingsTimeoutMs,
  });
  const env: Record<string, string> = {};
  const binds: Bind[] = [];
  /** The value as the sandbox has it: a file of the host lies elsewhere there. */
  const seen = async (value: string): Promise<string> => {
    if (!isAbsolute(value) || !(await isThere(value))) return value;
    const target = `${inside}/${binds.length}`;
    binds.push({ source: value, target });
    return target;
  };
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && passed.test(name)) env[name] = await seen(value);
  }
  const own = JSON.parse(listed) as Record<string, unknown>;
  const registries: string[] = [];
  for (const [name, value] of Object.entries(own)) {
    if (!settings.test(name) || value === null || value === '' || value === undefined) continue;
    if (registrySetting.test(name)) registries.push(String(value));
    env[`npm_config_${name}`] = await seen(String(value));
  }
  const files = [own.globalconfig, own.userconfig].filter((file) => typeof file === 'string');
  for (const [name, value] of await registryCredentials(registries, files, process.env))
    env[`npm_config_${name}`] = value;
  return { env, binds };
}

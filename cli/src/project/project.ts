import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { mergeObjects } from '../args/parameters.js';
import { ownNamespace } from '../args/qualified-name.js';
import type { CommandContext } from '../command.js';
import { messageOf } from '../errors.js';
import type { Json, JsonMap } from '../json/json.js';
import { loadSettings, type Settings } from '../settings.js';
import { stderr, stdout } from '../terminal.js';
import { compose, type ComposeOptions } from './compose.js';
import { deploy, putBinding, putPackage, undeploy } from './deploy.js';
import { clientError, type Deployer } from './deployer.js';
import { dependencyAnnotations, managedAnnotation, removeGone } from './managed.js';
import { bareError, fileError, readManifest, textOf, type Manifest } from './manifest.js';
import { applyDeployment, describePlan, type Plan, type PlannedDependency } from './plan.js';
import { downloadRepository, repositoryFolder } from './repository.js';
import { fetchRuntimes } from './runtimes.js';

/** A project's files, and the options of its plan. */
export interface Project {
  /** Folder for repositories that the project depends on. */
  folder: string;
  manifest: Manifest;
  deployment: Manifest | undefined;
  deployer: Deployer;
  options: ComposeOptions;
}

/** The manifest that the command line names, or else that of the project's folder; undefined if there is none. */
export function manifestFile({ flags }: CommandContext): string | undefined {
  const named = flags.text('manifest');
  if (named === '') return findIn(projectFolder(flags.text('project')), 'manifest');
  if (existsSync(named)) return named;
  throw fileError('ERROR_MANIFEST_FILE_NOT_FOUND', named, `Manifest file not found at path [${named}].\n`);
}

/** The folder of the project as an absolute path. */
export function projectFolder(flag: string): string {
  return resolve(flag.trim() || '.');
}

function findIn(folder: string, name: string): string | undefined {
  return [`${name}.yaml`, `${name}.yml`].map((file) => join(folder, file)).find((file) => existsSync(file));
}

/** Reads a project's files and the platform's runtimes. */
export async function openProject(context: CommandContext, file: string): Promise<Project> {
  const { flags, pairs } = context;
  const manifest = await readManifest(file);
  const deploymentFile = flags.text('deployment') || findIn(projectFolder(flags.text('project')), 'deployment');
  const deployment = deploymentFile === undefined ? undefined : await readManifest(deploymentFile);
  const deployer = connect(context, deployment, manifest);
  const runtimes = await fetchRuntimes(deployer.client).catch((error: unknown) => {
    throw clientError(error);
  });
  const commandLine = mergeObjects(pairs.parameters, 'parameter');
  const { namespace, warn } = deployer;
  const options = {
    runtimes,
    namespace,
    strict: flags.bool('strict'),
    commandLine,
    projectName: flags.text('projectname'),
    warn,
  };
  return { folder: projectFolder(flags.text('project')), manifest, deployment, deployer, options };
}

/** Credentials come from the command line, else the deployment file, else the manifest, else the settings. */
export function connect(context: CommandContext, deployment?: Manifest, manifest?: Manifest): Deployer {
  const { flags } = context;
  const fromFiles = (member: string): string =>
    [deployment, manifest].map((file) => (file ? textOf(file.project, member) : '')).find((value) => value !== '') ??
    '';
  const config = flags.text('config');
  const base = config === '' ? context.settings : loadSettings(flags, flags.text, config);
  const settings: Settings = {
    ...base,
    apiHost: flags.text('apihost') || fromFiles('apiHost') || base.apiHost,
    auth: flags.text('auth') || fromFiles('credential') || base.auth,
    gatewayToken: base.gatewayToken || fromFiles('apigwAccessToken'),
  };
  const missing = [
    settings.auth === '' ? 'The authentication key is not configured.\n' : '',
    settings.apiHost === '' ? 'The API host is not configured.\n' : '',
  ].filter((problem) => problem !== '');
  if (missing.length > 0) {
    throw bareError(`[ERROR_WHISK_CLIENT_INVALID_CONFIG]: ${missing.map((problem) => `\n==> ${problem}`).join('')}`);
  }
  const verbose = flags.bool('verbose');
  const say = (prefix: string) => (message: string) => {
    if (verbose) stdout.print(`${prefix}: ${message}`);
  };
  const namespace = flags.text('namespace') || fromFiles('namespace') || ownNamespace;
  return { client: context.clientFor(settings), settings, namespace, info: say('Info'), warn: say('Warning') };
}

/** The plan of a project, its deployment file applied. */
async function planOf({ manifest, deployment, deployer, options }: Project): Promise<Plan> {
  const plan = await compose(manifest, options);
  if (deployment) applyDeployment(plan, manifest, deployment, options.commandLine, deployer.warn);
  return plan;
}

/** Deploys a project. With `sync` also deletes entities of its earlier states that the present state has not. */
export async function deployProject(project: Project, preview: boolean, sync: boolean): Promise<void> {
  const { deployer, manifest, options } = project;
  const name = options.projectName || textOf(manifest.project, 'name');
  if (options.projectName !== '') deployer.warn(`The project name has been overridden. Using ${name}\n`);
  if (sync && name === '') {
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', manifest.file, 'The mandatory key [project name] is missing.\n');
  }
  const managed = sync ? managedAnnotation(name, manifest.file) : undefined;
  const own = managed ? { ...project, options: { ...options, managed } } : project;
  const plan = await planOf(own);
  if (preview) return stdout.print(describePlan(plan));
  await fetchDependencies(own, plan);
  try {
    await deploy(plan, deployer, (label, dependency) => deployFolder(own, label, dependency));
    if (managed) await synchronise(deployer, plan, managed);
  } catch (error) {
    stderr.print(
      'Error: Deployment did not complete successfully. Run `wskdeploy undeploy` to remove partially deployed assets.\n',
    );
    throw error;
  }
  stdout.print('Success: Deployment completed successfully.\n');
}

async function synchronise(deployer: Deployer, plan: Plan, managed: JsonMap): Promise<void> {
  await removeGone(deployer, managed);
  for (const planned of plan.packages.values()) {
    const dependencies = await dependencyAnnotations(deployer, planned.dependencies);
    if (dependencies.length === 0) continue;
    planned.annotations.set('whisk-managed', new Map<string, Json>([...managed, ['projectDeps', dependencies]]));
    await putPackage(deployer, planned);
  }
}

/** Downloads the repositories that a plan depends on, so that a missing one is reported before the deployment. */
async function fetchDependencies(project: Project, { packages }: Plan, onlyMissing = false): Promise<void> {
  const { folder, manifest, deployer } = project;
  for (const { dependencies } of packages.values()) {
    for (const [label, { repository }] of dependencies) {
      if (!repository) continue;
      const target = repositoryFolder(folder, label, repository);
      if (onlyMissing && existsSync(target)) continue;
      deployer.info(`Downloading dependency [${label}] ...\n`);
      try {
        await downloadRepository(repository, target);
      } catch (error) {
        throw fileError('ERROR_FILE_READ_ERROR', manifest.file, `Dependency [${label}]: ${messageOf(error)}\n`);
      }
    }
  }
}

/**
 * Deploys a dependency in another folder, which is a project of its own. If its package has another name, that name is
 * bound to it.
 */
async function deployFolder(project: Project, label: string, dependency: PlannedDependency): Promise<void> {
  const { deployer } = project;
  const other = await openFolder(project, label, dependency);
  const name = textOf(other.manifest.project, 'name') || label;
  const { managed: isManaged } = project.options;
  const managed = isManaged ? managedAnnotation(name, other.manifest.file) : undefined;
  const own = managed ? { ...other, options: { ...other.options, managed } } : other;
  const plan = await planOf(own);
  const [packageName, ...more] = plan.packages.keys();
  if (packageName === undefined || more.length > 0) {
    const message = `Dependency [${label}] must have exactly one package in its manifest file.`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', other.manifest.file, message);
  }
  await fetchDependencies(own, plan);
  await deploy(plan, deployer, (inner, innerDependency) => deployFolder(own, inner, innerDependency));
  if (packageName === label) return;
  const { parameters, annotations } = dependency;
  await putBinding(deployer, label, { location: `/${deployer.namespace}/${packageName}`, parameters, annotations });
}

async function openFolder(project: Project, label: string, dependency: PlannedDependency): Promise<Project> {
  const { location, repository } = dependency;
  const folder = repository
    ? join(repositoryFolder(project.folder, label, repository), repository.folder)
    : resolve(project.manifest.file, '..', location);
  const file = findIn(folder, 'manifest');
  if (file === undefined) {
    const message = `Dependency [${label}]: Manifest file not found at path [${folder}].\n`;
    throw fileError('ERROR_MANIFEST_FILE_NOT_FOUND', folder, message);
  }
  const deploymentFile = findIn(folder, 'deployment');
  const deployment = deploymentFile === undefined ? undefined : await readManifest(deploymentFile);
  const { managed, ...options } = project.options;
  const inherited = managed ? { ...options, managed } : options;
  const own = { ...inherited, projectName: '' };
  return { ...project, folder, manifest: await readManifest(file), deployment, options: own };
}

/** Deletes the entities of a project's files. */
export async function undeployFiles(project: Project, preview: boolean): Promise<void> {
  const plan = await planOf(project);
  if (preview) return stdout.print(describePlan(plan));
  await fetchDependencies(project, plan, true);
  try {
    await undeploy(plan, project.deployer, (label, dependency) => undeployFolder(project, label, dependency));
  } catch (error) {
    stderr.print('Error: Undeployment did not complete successfully.\n');
    throw error;
  }
  stdout.print('Success: Undeployment completed successfully.\n');
}

async function undeployFolder(project: Project, label: string, dependency: PlannedDependency): Promise<void> {
  const other = await openFolder(project, label, dependency);
  const plan = await planOf(other);
  await fetchDependencies(other, plan, true);
  if (!plan.packages.has(label)) await undeploy(bindingOnly(label, dependency), project.deployer, noFolders);
  await undeploy(plan, project.deployer, (inner, innerDependency) => undeployFolder(other, inner, innerDependency));
}

const noFolders = async (): Promise<void> => undefined;

function bindingOnly(label: string, dependency: PlannedDependency): Parameters<typeof undeploy>[0] {
  const dependencies = new Map([[label, { ...dependency, isBinding: true }]]);
  const packages = new Map([['default', { actions: new Map(), dependencies }]]);
  return { apis: [], packages, triggers: new Map(), rules: new Map() };
}

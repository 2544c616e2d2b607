import type { FlagSpec } from '../args/flags.js';
import { projectFlags, type Command, type CommandContext, commandUsage } from '../command.js';
import { bareError } from '../project/manifest.js';
import { stdout } from '../terminal.js';

const loadProject = () => import('../project/project.js');

/** Calls `use` with the manifest's path. If there is no manifest, prints the command's usage, as wskdeploy does. */
async function withManifest(
  command: Command,
  context: CommandContext,
  use: (file: string) => Promise<void>,
): Promise<void> {
  const { manifestFile, projectFolder } = await loadProject();
  const file = manifestFile(context);
  if (file !== undefined) return use(file);
  const folder = projectFolder(context.flags.text('project'));
  const usage = commandUsage(`wsk project ${command.name}`, command);
  stdout.print(`Manifest file not found at path [${folder}].\n${usage}\n`);
}

const deployAs =
  (sync: boolean) =>
  (context: CommandContext): Promise<void> =>
    withManifest(sync ? syncCommand : deployCommand, context, async (file) => {
      const { deployProject, openProject } = await loadProject();
      await deployProject(await openProject(context, file), context.flags.bool('preview'), sync);
    });

async function undeploy(context: CommandContext): Promise<void> {
  const { flags } = context;
  const { connect, openProject, undeployFiles } = await loadProject();
  const projectName = flags.text('projectname');
  if (projectName === '') {
    return withManifest(undeployCommand, context, async (file) =>
      undeployFiles(await openProject(context, file), flags.bool('preview')),
    );
  }
  const { projectAssets, undeployProject } = await import('../project/managed.js');
  const deployer = connect(context);
  if (!flags.bool('preview')) return undeployProject(deployer, projectName);
  const { packages, triggers, rules } = await projectAssets(deployer, projectName);
  const names = (title: string, list: Iterable<string>): string =>
    `${title}:\n${[...list].map((name) => `  * ${name}\n`).join('')}`;
  const actions = [...packages].flatMap(([name, inside]) =>
    [...inside.actions.keys()].map((action) => `${name}/${action}`),
  );
  stdout.print(
    names('Packages', packages.keys()) +
      names('Actions', actions) +
      names('Triggers', triggers.keys()) +
      names('Rules', rules.keys()),
  );
}

async function exportToFiles(context: CommandContext): Promise<void> {
  const [projectName, file] = [context.flags.text('projectname'), context.flags.text('manifest')];
  if (projectName === '' || file === '') {
    throw bareError('Exporting needs the name of a project (--projectname) and where its manifest goes (--manifest).');
  }
  const { connect } = await loadProject();
  const { exportProject } = await import('../project/export.js');
  await exportProject(connect(context), projectName, file);
  stdout.print(`Manifest exported to: ${file}\n`);
}

const flags: FlagSpec[] = [
  ...projectFlags,
  { name: 'cert', short: 'c', type: 'string', help: 'path of the .cert file', ofGroup: true },
  { name: 'key', short: 'k', type: 'string', help: 'path of the .key file', ofGroup: true },
];

const deployCommand: Command = {
  name: 'deploy',
  summary: 'A tool set to help deploy your openwhisk packages using a manifest file.',
  flags,
  needsServer: () => false,
  run: deployAs(false),
};

const syncCommand: Command = {
  name: 'sync',
  summary: 'A tool to sync your OpenWhisk packages between client and server.',
  flags,
  needsServer: () => false,
  run: deployAs(true),
};

const undeployCommand: Command = {
  name: 'undeploy',
  summary: 'Undeploy OpenWhisk assets from server',
  flags,
  needsServer: () => false,
  run: undeploy,
};

/** `wsk project`. */
export const projectCommands: Command[] = [
  deployCommand,
  {
    name: 'export',
    summary: 'Export project assets from OpenWhisk',
    flags,
    needsServer: () => false,
    run: exportToFiles,
  },
  syncCommand,
  undeployCommand,
];

import { writeFileSync } from 'node:fs';
import { argumentError, messageOf, WskError, wrapError } from '../../errors.js';
import { stdout } from '../../terminal.js';
import type { Command, CommandContext } from '../command.js';
import { completionScript } from './completion.js';
import { downloadNew, installDocker } from './download.js';

const completionFile = 'wsk_cli_bash_completion.sh';
const iosFile = 'OpenWhiskIOSStarterApp.zip';

async function install(context: CommandContext): Promise<void> {
  const [component, ...more] = context.args;
  if (component === undefined || more.length > 0) {
    throw argumentError(
      'The SDK component argument is missing. One component (docker, ios, or bashauto) must be specified',
    );
  }
  switch (component.toLowerCase()) {
    case 'docker':
      return installDocker(context.client);
    case 'ios':
      return installIos(context);
    case 'bashauto':
      return installCompletion(context);
    default:
      throw argumentError(
        `The SDK component argument '${component.toLowerCase()}' is invalid. Valid components are docker, ios and bashauto`,
      );
  }
}

async function installIos({ client }: CommandContext): Promise<void> {
  try {
    await downloadNew(client, iosFile);
  } catch (error) {
    throw wrapError(error, 'The ios SDK installation failed');
  }
  stdout.print(`Downloaded OpenWhisk iOS starter app. Unzip '${iosFile}' and open the project in Xcode.\n`);
}

async function installCompletion({ flags }: CommandContext): Promise<void> {
  const script = await completionScript();
  if (flags.bool('stdout')) return stdout.print(script);
  try {
    writeFileSync(completionFile, script);
  } catch (error) {
    throw new WskError(`Unable to generate '${completionFile}': ${messageOf(error)}`);
  }
  stdout.print(
    `The bash auto-completion script (${completionFile}) is installed in the current directory.\n` +
      'To enable command line completion of wsk commands, source the auto completion script into your bash environment\n',
  );
}

/** `wsk sdk`. */
export const sdkCommands: Command[] = [
  {
    name: 'install',
    argsUsage: 'COMPONENT',
    summary: 'install SDK artifacts, where valid COMPONENT values are docker, iOS, and bashauto',
    flags: [{ name: 'stdout', short: 's', type: 'bool', help: 'prints bash command completion script to stdout' }],
    needsServer: (_, args) => args[0] !== 'bashauto',
    run: install,
  },
];

import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { extract } from 'tar-stream';
import { globalFlags, helpFlag, withGlobals, type FlagSpec } from '../args/flags.js';
import type { Client } from '../client/client.js';
import type { Command, CommandContext } from '../command.js';
import { argumentError, messageOf, wrapError, WskError } from '../errors.js';
import { stdout } from '../terminal.js';

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

const skeletonFile = 'blackbox.tar.gz';
const skeletonFolder = 'dockerSkeleton';
const maxUnpackedBytes = 64 * 1024 * 1024;

/** Downloads the skeleton of a Docker action and unpacks it in the current folder. */
async function installDocker(client: Client): Promise<void> {
  refuseExisting('file', skeletonFile);
  try {
    const archive = await download(client, skeletonFile);
    refuseExisting('directory', skeletonFolder);
    await unpack(archive);
  } catch (error) {
    throw wrapError(error, 'The docker SDK installation failed');
  }
  stdout.print('The docker skeleton is now installed at the current directory.\n');
}

/** Downloads one of the server's files into the current folder. @throws WskError if the file exists already. */
async function downloadNew(client: Client, file: string): Promise<void> {
  refuseExisting('file', file);
  const content = await download(client, file);
  try {
    writeFileSync(file, content, { flag: 'wx' });
  } catch (error) {
    throw new WskError(`Error creating SDK file '${file}': ${messageOf(error)}`);
  }
}

async function download(client: Client, file: string): Promise<Buffer> {
  try {
    return await client.download(file);
  } catch (error) {
    throw new WskError(`Unable to retrieve '${file}' SDK: ${messageOf(error)}`);
  }
}

function refuseExisting(what: 'file' | 'directory', name: string): void {
  if (existsSync(name)) throw new WskError(`The ${what} '${name}' already exists.  Delete it and retry.`);
}

async function unpack(archive: Buffer): Promise<void> {
  let entries: TarEntry[];
  try {
    entries = await readTar(gunzipSync(archive, { maxOutputLength: maxUnpackedBytes }));
  } catch (error) {
    throw new WskError(`Error unGzipping file '${skeletonFile}': ${messageOf(error)}`);
  }
  for (const { name, mode, content } of entries) {
    if (content === undefined) {
      mkdirSync(name, { recursive: true });
    } else {
      mkdirSync(dirname(name), { recursive: true });
      writeFileSync(name, content);
      chmodSync(name, mode);
    }
  }
}

/** A file, or a folder if it has no content. */
interface TarEntry {
  /** Relative, without `..`. */
  name: string;
  mode: number;
  content?: Buffer;
}

/**
 * Reads the files and folders of a tar archive.
 * @throws Error if the archive is damaged or cut off. Also throws for other entries (links, devices) and for a path
 * that leaves its folder.
 */
async function readTar(archive: Buffer): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  const stream = extract();
  stream.end(archive);
  for await (const entry of stream) {
    const { name, mode = 0, type } = entry.header;
    if (type !== 'file' && type !== 'directory') throw new Error(`unexpected tar file type '${type}'`);
    const content = await buffer(entry);
    const read = { name: within(name), mode: mode & 0o777 };
    entries.push(type === 'file' ? { ...read, content } : read);
  }
  return entries;
}

function within(name: string): string {
  if (name.startsWith('/') || name.split('/').includes('..')) throw new Error(`'${name}' leads out of the folder`);
  return name;
}

/** The words that may follow a part of a command line. */
interface Node {
  /** `wsk_action_create`, the name in the script. */
  id: string;
  words: string[];
}

/** A script that completes commands and flags of wsk in bash. */
async function completionScript(): Promise<string> {
  const nodes = await allNodes();
  const cases = nodes.map(({ id, words }) => `    ${id}) words="${words.join(' ')}" ;;`);
  return `# bash completion for wsk -*- shell-script -*-

__wsk_words() {
  local words=""
  case "$1" in
${cases.join('\n')}
  esac
  echo "$words"
}

__wsk_complete() {
  local current="\${COMP_WORDS[COMP_CWORD]}" node="wsk" word index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case "$word" in -*) continue ;; esac
    if [ -n "$(__wsk_words "\${node}_\${word}")" ]; then node="\${node}_\${word}"; fi
  done
  COMPREPLY=($(compgen -W "$(__wsk_words "$node")" -- "$current"))
  if [ \${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}

complete -o default -F __wsk_complete wsk
`;
}

async function allNodes(): Promise<Node[]> {
  const { commandTable } = await import('./table.js');
  const nodes: Node[] = [
    { id: 'wsk', words: [...commandTable.map(({ name }) => name), 'help', ...flagWords(globalFlags)] },
  ];
  for (const entry of commandTable) {
    const loaded = await entry.load();
    const id = `wsk_${entry.name}`;
    if (!Array.isArray(loaded)) {
      nodes.push({ id, words: flagWords(withGlobals(loaded.flags)) });
      continue;
    }
    nodes.push({ id, words: [...loaded.map(({ name }) => name), ...flagWords(globalFlags)] });
    for (const command of loaded) {
      nodes.push({ id: `${id}_${command.name}`, words: flagWords(withGlobals(command.flags)) });
    }
  }
  return nodes;
}

function flagWords(flags: FlagSpec[]): string[] {
  return [...flags, helpFlag('')].flatMap(({ name, short }) => [`--${name}`, ...(short ? [`-${short}`] : [])]);
}

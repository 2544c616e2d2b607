import type { Flags, FlagSpec } from './args/flags.js';
import type { Pairs } from './args/parameters.js';
import type { Client } from './client/client.js';
import { argumentError } from './errors.js';
import type { Settings } from './settings.js';

/** Arguments and services of a running command. */
export interface CommandContext {
  args: string[];
  flags: Flags;
  pairs: Pairs;
  settings: Settings;
  /** Throws WskError if no valid API host is configured; commands that need none need not touch it. */
  client: Client;
  /** A client for other settings than the command line's own. */
  clientFor(settings: Settings): Client;
}

/** One command, such as `action create`. */
export interface Command {
  name: string;
  /** The arguments as the usage line shows them: `ACTION_NAME [ACTION]`. */
  argsUsage?: string;
  summary: string;
  flags: FlagSpec[];
  /** False when the command, as called, works without an API host. Default: it needs one. */
  needsServer?(flags: Flags, args: string[]): boolean;
  run(context: CommandContext): Promise<void>;
}

/** A word after `wsk`: a command, or a group of commands, loaded when it is called. */
export interface CommandEntry {
  name: string;
  summary: string;
  /** Flags of all commands of a group, for its help. */
  flags?: FlagSpec[];
  load(): Promise<Command | Command[]>;
}

/** @throws WskError unless there are `least` to `most` arguments; `required` says which. */
export function checkArgs(args: string[], least: number, most: number, required: string): void {
  if (args.length < least) throw argumentError(`Invalid argument(s). ${required}`);
  if (args.length > most) throw argumentError(`Invalid argument(s): ${args.slice(most).join(', ')}. ${required}`);
}

const sortHelp =
  'sorts a list alphabetically by entity name; only applicable within the limit/skip returned entity block';

/** `-n`, of commands that list entities. */
export const nameSortFlag: FlagSpec = { name: 'name-sort', short: 'n', type: 'bool', help: sortHelp };

/** `-s` and `-l`, of commands that list `entities`. */
export function pageFlags(entities: string, limitNote = ''): FlagSpec[] {
  return [
    { name: 'skip', short: 's', type: 'int', help: `exclude the first \`SKIP\` number of ${entities} from the result` },
    {
      name: 'limit',
      short: 'l',
      type: 'int',
      default: 30,
      help: `only return \`LIMIT\` number of ${entities} from the collection${limitNote}`,
    },
  ];
}

/** `-p` and `-P`, of commands that take parameters. */
export const parameterFlags: FlagSpec[] = [
  { name: 'param', short: 'p', type: 'pair', help: 'parameter values in `KEY VALUE` format' },
  { name: 'param-file', short: 'P', type: 'string', help: '`FILE` containing parameter values in JSON format' },
];

/** `-a` and `-A`, of commands that take annotations. */
export const annotationFlags: FlagSpec[] = [
  { name: 'annotation', short: 'a', type: 'pair', help: 'annotation values in `KEY VALUE` format' },
  { name: 'annotation-file', short: 'A', type: 'string', help: '`FILE` containing annotation values in JSON format' },
];

/** Flags of all commands of `wsk project`. */
export const projectFlags: FlagSpec[] = [
  { name: 'config', type: 'string', help: 'config file (default is $HOME/.wskprops)', ofGroup: true },
  { name: 'deployment', type: 'string', help: 'path to deployment file', ofGroup: true },
  { name: 'manifest', type: 'string', help: 'path to manifest file', ofGroup: true },
  { name: 'namespace', short: 'n', type: 'string', help: 'namespace', ofGroup: true },
  { name: 'param', type: 'pair', help: 'parameter values in `KEY VALUE` format', ofGroup: true },
  { name: 'param-file', type: 'string', help: '`FILE` containing parameter values in JSON format', ofGroup: true },
  { name: 'preview', type: 'bool', help: 'show deployment/undeployment plan', ofGroup: true },
  { name: 'project', type: 'string', default: '.', help: 'path to serverless project', ofGroup: true },
  { name: 'projectname', type: 'string', help: 'project name', ofGroup: true },
  { name: 'strict', type: 'bool', help: 'allow user defined runtime version', ofGroup: true },
];

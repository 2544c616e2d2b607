import { globalFlags, helpFlag, parseFlags, type FlagSpec } from '../args/flags.js';
import { mergeObjects, takePairs } from '../args/parameters.js';
import { projectFlags } from '../command.js';
import { parseJson } from '../json/parse.js';
import type { JsonMap } from '../json/json.js';
import { messageOf } from '../errors.js';
import { UsageError } from '../migrate/run.js';
import { loadSettings, type Settings } from '../settings.js';

/** Text of `gpuwhisk dev --help`. */
export const devHelp = `usage: gpuwhisk dev FILE|FOLDER [flags]

Runs an action, and again after each save: prints its log, its result, and where the time went. The action runs on a platform
of its own, which ends with this command; its annotations, limits and inputs are those of the manifest.yaml beside it, in the
entry whose function the FILE or FOLDER is. A machine without GPUs has a simulated one. Enter runs it again, Ctrl-C ends.

  -p, --param NAME VALUE   a parameter; may be repeated
  -P, --param-file FILE    parameters from a JSON file
      --input JSON         the parameters as a JSON object
      --inspect            run it outside of the platform, in a process that a debugger can attach to (Node.js, Python)
      --gpus SPEC          GPUs of the platform: auto, none, or simulated ones such as sim:a100-40x2
      --apihost HOST       use a platform that runs, with --auth KEY
      --once               run it once and end: 0 if it succeeded, else 1
      --json               print a line of JSON for each run
`;

/** Text of `gpuwhisk deploy --help`. */
export const deployHelp = `usage: gpuwhisk deploy [FILE|FOLDER] [flags]

Creates or updates what manifest.yaml describes, as 'wsk project deploy' does; or, with FILE or FOLDER, the one action whose code that
is, with the annotations, limits and inputs of the manifest.yaml beside it.

  -p, --param NAME VALUE   a value for an input of the manifest; may be repeated
  -P, --param-file FILE    values from a JSON file
      --apihost HOST       the platform (else WHISK_APIHOST, or .wskprops)
      --auth KEY           the key (else WHISK_AUTH, or .wskprops)
`;

const devFlags: FlagSpec[] = [
  ...globalFlags,
  helpFlag('dev'),
  { name: 'input', type: 'string', help: '' },
  { name: 'inspect', type: 'bool', help: '' },
  { name: 'gpus', type: 'string', help: '' },
  { name: 'once', type: 'bool', help: '' },
  { name: 'json', type: 'bool', help: '' },
];

/** The command line of `gpuwhisk dev`. */
export interface DevOptions {
  path: string;
  parameters: JsonMap;
  inspect: boolean;
  /** Undefined: the GPUs of the machine, or a simulated one. */
  gpus: string | undefined;
  once: boolean;
  json: boolean;
  settings: Settings;
  /** Whether a running platform is used. */
  isRemote: boolean;
}

/** Reads the command line of `gpuwhisk dev`; undefined asks for help. Throws UsageError. */
export function readDevOptions(given: readonly string[]): DevOptions | undefined {
  const { words, pairs, flags, args } = parsed(given, devFlags);
  if (flags.bool('help')) return undefined;
  const [path, ...others] = args;
  if (path === undefined || others.length > 0)
    throw new UsageError(`one file or folder is needed, not ${words.length === 0 ? 'none' : `'${args.join(' ')}'`}`);
  return {
    path,
    parameters: new Map([
      ...inputOf(flags.text('input')),
      ...asUsage(() => mergeObjects(pairs.parameters, 'parameter')),
    ]),
    inspect: flags.bool('inspect'),
    gpus: flags.given('gpus') ? flags.text('gpus') : undefined,
    once: flags.bool('once'),
    json: flags.bool('json'),
    settings: loadSettings(flags, flags.text),
    isRemote: flags.given('apihost'),
  };
}

/** The command line of `gpuwhisk deploy`. */
export interface DeployOptions {
  /** Undefined: the whole manifest. */
  path: string | undefined;
  parameters: JsonMap;
  settings: Settings;
}

/** Reads the command line of `gpuwhisk deploy`; undefined asks for help. Throws UsageError. */
export function readDeployOptions(given: readonly string[]): DeployOptions | undefined {
  const { pairs, flags, args } = parsed(given, [...globalFlags, helpFlag('deploy'), ...projectFlags]);
  if (flags.bool('help')) return undefined;
  if (args.length > 1) throw new UsageError(`one file or folder can be deployed at a time, not '${args.join(' ')}'`);
  const parameters = asUsage(() => mergeObjects(pairs.parameters, 'parameter'));
  return { path: args[0], parameters, settings: loadSettings(flags, flags.text) };
}

function parsed(given: readonly string[], specs: FlagSpec[]) {
  return asUsage(() => {
    const { words, pairs } = takePairs([...given]);
    return { words, pairs, ...parseFlags(words, specs) };
  });
}

function inputOf(text: string): JsonMap {
  if (text === '') return new Map();
  const value = asUsage(() => parseJson(text, { whole: true }));
  if (value instanceof Map) return value;
  throw new UsageError(`--input must be a JSON object, not '${text}'`);
}

function asUsage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

// Which runtime family the extension of a file of code stands for, as OpenWhisk's wsk and wskdeploy have it.

/** The tools of OpenWhisk whose rules the commands follow: `wsk action` those of wsk, `wsk project` those of wskdeploy. */
type Tool = 'wsk' | 'wskdeploy';

interface CodeExtension {
  /** Without its dot. */
  extension: string;
  family: string;
  /** Such files are sent in base64. */
  isBinary?: true;
  /** The only tool that knows the extension; absent: both do. */
  only?: Tool;
}

const codeExtensions: readonly CodeExtension[] = [
  { extension: 'js', family: 'nodejs' },
  { extension: 'py', family: 'python' },
  { extension: 'swift', family: 'swift' },
  { extension: 'php', family: 'php' },
  { extension: 'java', family: 'java', only: 'wskdeploy' },
  { extension: 'jar', family: 'java', isBinary: true },
  { extension: 'rb', family: 'ruby' },
  { extension: 'rs', family: 'rust' },
  { extension: 'go', family: 'go' },
  { extension: 'cs', family: 'dotnet', only: 'wskdeploy' },
  { extension: 'balx', family: 'ballerina', isBinary: true, only: 'wsk' },
];

function knownTo(tool: Tool): CodeExtension[] {
  return codeExtensions.filter(({ only }) => only === undefined || only === tool);
}

/** The family that a tool takes files of this extension (without its dot) for; undefined if it knows none. */
export function familyForExtension(tool: Tool, extension: string): string | undefined {
  return knownTo(tool).find((one) => one.extension === extension)?.family;
}

/** The extension, without its dot, that a tool gives code of a family: the first of the table; undefined if it knows none. */
export function extensionForFamily(tool: Tool, family: string): string | undefined {
  return knownTo(tool).find((one) => one.family === family)?.extension;
}

/** Whether a tool sends files of this extension (without its dot) in base64. */
export function isBinaryExtension(tool: Tool, extension: string): boolean {
  return extension === 'zip' || knownTo(tool).some((one) => one.extension === extension && one.isBinary === true);
}

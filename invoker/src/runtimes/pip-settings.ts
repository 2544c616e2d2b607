import { isAbsolute } from 'node:path';
import type { Python } from './find-python.js';
import { isThere } from '../host/partial-folders.js';
import type { Bind } from '../containers/runtime-launch.js';
import { runProgram } from '../host/run-program.js';

const timeoutMs = 30_000;
/** Where files and folders that settings name lie inside. */
const inside = '/run/pip';
/** What the platform's own environment says about connections. */
const passed = /^(https?_proxy|no_proxy|all_proxy|ssl_cert_(file|dir)|requests_ca_bundle)$/i;

/**
 * The operator's settings of pip (files and variables, as `pip config list` merges them) for a pip in a sandbox: as
 * variables, with the local files that they name. Rejects with ProgramError if pip does not start.
 */
export async function pipSettings(python: Python): Promise<{ env: Record<string, string>; binds: Bind[] }> {
  const listed = await runProgram(python.installer, ['-m', 'pip', 'config', 'list'], { timeoutMs });
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && passed.test(name)) env[name] = value;
  }
  // Weakest first: all commands, `pip install`, variables.
  for (const section of ['global', 'install', ':env:']) {
    for (const [name, value] of settingsOf(listed, section))
      env[`PIP_${name.replace(/-/g, '_').toUpperCase()}`] = value;
  }
  const binds: Bind[] = [];
  for (const [name, value] of Object.entries(env)) {
    const words = await Promise.all(
      value.split(/\s+/).map(async (word) => {
        if (!isAbsolute(word) || !(await isThere(word))) return word;
        const target = `${inside}/${binds.length}`;
        binds.push({ source: word, target });
        return target;
      }),
    );
    env[name] = words.join(' ');
  }
  return { env, binds };
}

/** Names and values of a section in what `pip config list` prints: `section.name='value'`, as Python writes strings. */
export function settingsOf(listed: string, section: string): [string, string][] {
  return listed.split('\n').flatMap((line): [string, string][] => {
    const [, found, name = '', quoted = ''] = /^(.+)\.([\w-]+)=(.*)$/.exec(line) ?? [];
    if (found !== section || quoted.length < 2) return [];
    const value = quoted.slice(1, -1).replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
    return [[name, value]];
  });
}

// Helpers of the cases of WskCliBasicTests.
import { expect } from '@jest/globals';
import type { Activation, Trial } from './trial.js';
import { exits, WskShell } from './wsk-shell.js';

export const noSuch = 'The requested resource does not exist.';

export const code = '\\(code [0-9a-zA-Z_-]+\\)';

export const described = JSON.stringify([
  { name: 'paramName1', description: 'Parameter description 1' },
  { name: 'paramName2', description: 'Parameter description 2' },
]);

export const summarised = '\\s*\\(parameters: paramName1, paramName2\\)';

/** A shell with a trigger and its rule. */
export async function withRule(
  t: Trial,
  trigger: readonly string[] = [],
): Promise<{ shell: WskShell; trigger: string; action: string; rule: string }> {
  const shell = await WskShell.open(t);
  const names = {
    trigger: await shell.create('trigger', t.name('trigger'), trigger),
    action: await shell.create('action', t.name('action')),
  };
  const rule = await shell.create('rule', t.name('rule'), [names.trigger, names.action]);
  return { shell, ...names, rule };
}

/** Runs a `wsk` command that starts an activation; resolves with its record. */
export async function recordOf(shell: WskShell, args: readonly string[]): Promise<Activation> {
  const [, id = ''] = /with id ([0-9a-f]{32})/.exec(await shell.prints(args)) ?? [];
  return shell.trial.record(id);
}

/** Expects these values from `wsk KIND get NAME FIELD`, field by field. */
export async function tellsFields(
  shell: WskShell,
  kind: string,
  name: string,
  fields: Readonly<Record<string, string | RegExp>>,
): Promise<void> {
  const told = `ok: got ${kind} ${name}, displaying field`;
  for (const [field, value] of Object.entries(fields)) {
    const printed = await shell.prints([kind, 'get', name, field]);
    expect(printed).toContain(`${told} ${field}\n`);
    if (typeof value === 'string') expect(printed).toContain(`${told} ${field}\n${value}`);
    else expect(printed).toMatch(value);
  }
  if (kind !== 'rule')
    await shell.fails([kind, 'get', name, 'invalid'], exits.error, "Invalid field filter 'invalid'.");
}

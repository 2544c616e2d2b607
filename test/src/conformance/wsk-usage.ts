// Helpers of the cases of WskCliBasicUsageTests.
import type { Activation, Trial } from './trial.js';
import { WskShell } from './wsk-shell.js';

/** Parameters or annotations in the API's form. */
export type Pairs = { key: string; value: unknown }[];

/** Invokes an action with `wsk`; resolves with its record. */
export async function recordOf(shell: WskShell, args: readonly string[]): Promise<Activation> {
  const printed = await shell.prints(['action', 'invoke', ...args]);
  const [, id = ''] = /with id ([0-9a-f]{32})/.exec(printed) ?? [];
  return shell.trial.record(id);
}

/** A shell with an action of this code; `rest` holds further arguments of its creation. */
export async function withAction(
  t: Trial,
  code: string,
  rest: readonly string[] = [],
): Promise<{ shell: WskShell; name: string }> {
  const shell = await WskShell.open(t);
  await shell.write('code.js', code);
  const name = await shell.create('action', t.name('action'), ['code.js', ...rest]);
  return { shell, name };
}

/** A copy sorted by key. */
export const sorted = (pairs: Pairs): Pairs => pairs.toSorted((a, b) => (a.key < b.key ? -1 : 1));

/** Annotations of a web action. */
export const web = (isWeb: boolean, isRaw = false): Pairs => [
  { key: 'web-export', value: isWeb || isRaw },
  { key: 'raw-http', value: isRaw },
  { key: 'final', value: isWeb || isRaw },
];

export const runtime: Pairs = [{ key: 'exec', value: 'nodejs:20' }];

export const noKey: Pairs = [{ key: 'provide-api-key', value: false }];

export const kind = ['--kind', 'nodejs:20'];

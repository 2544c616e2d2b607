import { expect, test } from '@jest/globals';
import { LookAccounts } from './look-accounts.js';

/** Accounts, and looks that take some ms of their clock. */
function accountsOf(): {
  accounts: LookAccounts;
  pass: (ms: number) => void;
  look: (ms: number) => () => Promise<string>;
} {
  let nowMs = 0;
  const pass = (ms: number): void => void (nowMs += ms);
  const look = (ms: number) => async (): Promise<string> => {
    await Promise.resolve();
    pass(ms);
    return 'found';
  };
  return { accounts: new LookAccounts({ monotonicMs: () => nowMs, defer: setImmediate }), pass, look };
}

test('a namespace rests four times as long as its looks took together, and others do not', async () => {
  const { accounts, pass, look } = accountsOf();
  await accounts.take('b', look(0));
  await Promise.all([accounts.take('a', look(300)), accounts.take('a', look(200))]);
  expect([accounts.rests('a'), accounts.rests('b'), accounts.rests('c')]).toEqual([true, false, false]);
  pass(1999);
  expect(accounts.rests('a')).toBe(true);
  pass(1);
  expect(accounts.rests('a')).toBe(false);
});

test('no rest is longer than 30 s', async () => {
  const { accounts, pass, look } = accountsOf();
  await accounts.take('a', look(60_000));
  pass(29_999);
  expect(accounts.rests('a')).toBe(true);
  pass(1);
  expect(accounts.rests('a')).toBe(false);
});

test('looks of a namespace are made one at a time, those of others meanwhile', async () => {
  const { accounts } = accountsOf();
  const begun: string[] = [];
  let release = (): void => undefined;
  const held = accounts.take('a', () => {
    begun.push('first');
    return new Promise<void>((resolve) => (release = resolve));
  });
  const next = accounts.take('a', async () => void begun.push('second'));
  await accounts.take('b', async () => void begun.push('other'));
  expect(begun).toEqual(['first', 'other']);
  release();
  await Promise.all([held, next]);
  expect(begun).toEqual(['first', 'other', 'second']);
});

test('looks of many namespaces that wait for nothing are made between other work', async () => {
  const { accounts, look } = accountsOf();
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const all = Array.from({ length: 20 }, (_, at) => [`n${at}`, `n${at}`]).flat();
  await Promise.all(all.map((namespace) => accounts.take(namespace, look(1))));
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(all.length);
});

import { expect, test } from '@jest/globals';
import { parseManifest, kindsOf, resolveKind } from '../runtimes.js';
import type { RuntimeManifest } from '../runtimes.js';
import type { Clock } from '../system/clock.js';
import { ClusterRuntimes, OfferedRuntimes } from './cluster-runtimes.js';
import { embeddedState } from './embedded-state.js';

const image = { prefix: 'openwhisk', name: 'n', tag: 't' };
const manifest = (runtimes: Record<string, string[]>, env?: Record<string, string>): RuntimeManifest => {
  const families = Object.entries(runtimes).map(([family, versions]) => {
    const entries = versions.map((version, at) => ({
      ...{ kind: `${family}:${version}`, default: at === 0, image },
      ...(env && { command: ['/opt/x'], env }),
    }));
    return [family, entries];
  });
  return parseManifest(JSON.stringify({ runtimes: Object.fromEntries(families) as object }), 'runtimes.json');
};
const listed = manifest({ nodejs: ['20', '22'], python: ['3'], java: ['17'], ruby: ['3.1'] });

/** A clock whose time the test sets; its timers run by `pass`. */
function handClock(): Clock & { pass(ms: number): Promise<void> } {
  let nowMs = 1_700_000_000_000;
  let timers: { atMs: number; run: () => void }[] = [];
  const setTimer = (delayMs: number, run: () => void) => {
    const timer = { atMs: nowMs + delayMs, run };
    timers.push(timer);
    return { cancel: () => void (timers = timers.filter((other) => other !== timer)) };
  };
  return {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    setTimer,
    setBackgroundTimer: setTimer,
    defer: (run) => run(),
    async pass(ms) {
      const untilMs = nowMs + ms;
      for (;;) {
        const next = timers.filter(({ atMs }) => atMs <= untilMs).sort((one, other) => one.atMs - other.atMs)[0];
        if (next === undefined) break;
        timers = timers.filter((other) => other !== next);
        nowMs = Math.max(nowMs, next.atMs);
        next.run();
        await new Promise(setImmediate);
      }
      nowMs = untilMs;
    },
  };
}

test('a cluster lists the runtimes of its invokers, as they come and for a time after they have gone', async () => {
  const clock = handClock();
  const state = embeddedState(clock);
  const logger = { warn: () => undefined };
  const cluster = new ClusterRuntimes({ state, clock, logger, listed });
  await cluster.open();
  expect(kindsOf(cluster.manifest())).toEqual(kindsOf(listed));

  const offer = (at: number, has: RuntimeManifest): OfferedRuntimes =>
    new OfferedRuntimes({ state, clock, logger, invoker: `invoker${at}`, manifest: has });
  const first = offer(0, manifest({ nodejs: ['20'], python: ['3.11'] }));
  await first.open();
  expect(kindsOf(cluster.manifest())).toEqual(['nodejs:20', 'python:3.11']);

  const second = offer(1, manifest({ go: ['1.19'], python: ['3.13'], nodejs: ['22', '20'] }, { TOKEN: 'secret' }));
  await second.open();
  const third = offer(2, manifest({ python: ['3.13'] }));
  await third.open();
  expect(kindsOf(cluster.manifest())).toEqual(['nodejs:20', 'nodejs:22', 'python:3.11', 'python:3.13', 'go:1.19']);
  // The default that most invokers have; each family has one.
  expect(resolveKind(cluster.manifest(), 'python:default')?.kind).toBe('python:3.13');
  expect(resolveKind(cluster.manifest(), 'nodejs:default')?.kind).toBe('nodejs:20');
  // How kinds are started is the invokers' own.
  expect(JSON.stringify([...(await state.rows('runtimes'))])).not.toContain('secret');

  // An invoker that starts again, or says nothing for some minutes, has not lost its languages.
  second.close();
  await clock.pass(500_000);
  expect(kindsOf(cluster.manifest())).toContain('go:1.19');
  await clock.pass(200_000);
  expect(kindsOf(cluster.manifest())).toEqual(['nodejs:20', 'python:3.11', 'python:3.13']);

  // A controller that comes later reads them.
  const later = new ClusterRuntimes({ state, clock, logger, listed });
  await later.open();
  expect(later.manifest()).toEqual(cluster.manifest());
  for (const part of [first, third]) part.close();
  for (const part of [cluster, later]) await part.close();
});

test('rows of another kind are left out', async () => {
  const clock = handClock();
  const state = embeddedState(clock);
  const cluster = new ClusterRuntimes({ state, clock, logger: { warn: () => undefined }, listed });
  await state.setRow('runtimes', 'invoker7', ['other']);
  await cluster.open();
  await state.setRow('runtimes', 'invoker8', { runtimes: 5 });
  expect(cluster.manifest()).toBe(listed);
  await cluster.close();
});

// A live run of a scheduler whose decisions are saved and repeated from their files.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { Config } from '@gpuwhisk/common/config';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { plainDecision } from '@gpuwhisk/gpu/testing/fixtures';
import { decideAgain, readPass } from '@gpuwhisk/gpu/testing/saved-pass';
import type { Decision } from '@gpuwhisk/gpu/view/decision';
import { toPlain } from '@gpuwhisk/gpu/view/saved-view';
import { restartVersions } from '../api/gpu-nodes.js';
import { GpuCluster } from './gpu-cluster.js';
import { SimulatedNode } from './simulated-node.js';

/** Fields of decision records that explanations add: they decide nothing. */
const ofExplanations: ReadonlySet<string> = new Set(['ahead', 'waitedFor', 'sloMs', 'run']);

function digestsOf(cluster: GpuCluster): string {
  // The times alone that a placement tells its agent are no part of the decision.
  const records = cluster.performanceData.decisions.latest().map((record) => {
    if (record.placement === undefined) return record;
    const placement = { ...record.placement };
    delete placement.alone;
    return { ...record, placement };
  });
  const decided = records.map((record) =>
    Object.fromEntries(Object.entries(record).filter(([field]) => !ofExplanations.has(field))),
  );
  const sent = records.map(({ at, activationId, placement }) => [at, activationId, placement]);
  const digests = [sent, decided].map((what) => {
    return createHash('sha256')
      .update(JSON.stringify(toPlain(what)))
      .digest('hex')
      .slice(0, 12);
  });
  return [...digests, `${records.length} decisions`].join(', ');
}

/**
 * Runs forty requests under a policy, writes the view of each decision into the folder, and expects each decision to be the
 * same from its file. Resolves with digests of what was sent and told.
 */
export async function repeatedLiveRun(policy: Config['gpu']['policy'], folder: string): Promise<string> {
  restartVersions();
  const decisions: JsonValue[] = [];
  let starts = 0;
  const fileOf = (at: number): string => join(folder, `${at}.json`);
  const keep = (saved: JsonObject, decision: Decision): void => {
    writeFileSync(fileOf(decisions.length), JSON.stringify(saved));
    decisions.push(plainDecision(decision));
    starts += decision.starts.length;
  };
  const cluster = await GpuCluster.start({ policy }, 1000, undefined, keep);
  const { clock, random, scheduler } = cluster;
  const node = new SimulatedNode(cluster, (name, share, beside) => (name.length * 3000 * (1 + beside)) / share);
  await node.tell();
  for (let count = 0; count < 40; count++) {
    const called = 'f'.repeat(1 + (random.uint32() % 4));
    await cluster.accept(called, {
      ...{ memoryMiB: 4000 + 6000 * (called.length - 1), features: { smUtil: called.length / 5 } },
      ...(random.uint32() % 2 === 0 && { sloMs: 2000 }),
    });
    await clock.runFor(random.uint32() % 120);
  }
  expect(scheduler.waiting).toBeGreaterThan(0);
  const now = readPass(JSON.parse(JSON.stringify(scheduler.savedView())) as JsonValue);
  expect(now.view.waiting).toHaveLength(scheduler.waiting);
  expect(toPlain(now.view.instances)).toEqual(toPlain(scheduler.view().instances));
  await clock.runFor(60_000);
  expect(await cluster.faults()).toBe(0);
  expect(starts).toBeGreaterThanOrEqual(40);
  for (const [at, decision] of decisions.entries()) {
    const saved = JSON.parse(readFileSync(fileOf(at), 'utf8')) as JsonValue;
    expect(plainDecision(decideAgain(saved))).toEqual(decision);
  }
  return digestsOf(cluster);
}

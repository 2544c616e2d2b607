// A live scheduler writes its views to files; each decision is then repeated from its file.
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { decideAgain, readPass } from '@gpuwhisk/gpu/policies/saved-pass';
import { plainDecision } from '@gpuwhisk/gpu/testing/fixtures';
import type { Config } from '@gpuwhisk/common/config';
import type { Decision } from '@gpuwhisk/gpu/view/decision';
import { toPlain } from '@gpuwhisk/gpu/view/saved-view';
import { GpuCluster } from './gpu-cluster.js';
import { triedPolicies } from '../support/tried-policies.js';
import { SimulatedNode } from './simulated-node.js';

const choices: [string, Config['gpu']['policy']][] = [
  ...triedPolicies.map((name): [string, string] => [name, name]),
  ['faashare with reactive scaling', { base: 'faashare', scale: 'reactive', preempt: 'by-stop' }],
];

/** What live runs sent and told, by their decision records: a change that alters one shows here. */
const goldenRuns = new URL('../../src/controller/golden-live-runs.json', import.meta.url);

function digestsOf(cluster: GpuCluster): string {
  const records = cluster.performanceData.decisions.latest();
  const sent = records.map(({ at, activationId, placement }) => [at, activationId, placement]);
  const digests = [sent, records].map((what) => {
    return createHash('sha256')
      .update(JSON.stringify(toPlain(what)))
      .digest('hex')
      .slice(0, 12);
  });
  return [...digests, `${records.length} decisions`].join(', ');
}

describe.each(choices)('under policy %s', (name, policy) => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'views-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test('every decision of a live run is the same from its file', async () => {
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
    const kept = JSON.parse(readFileSync(goldenRuns, 'utf8')) as Record<string, string>;
    const found = digestsOf(cluster);
    // For a change that is meant to change them, and says why.
    if (process.env['GOLDEN_UPDATE'] === '1') {
      writeFileSync(goldenRuns, `${JSON.stringify({ ...kept, [name]: found }, undefined, 2)}\n`);
    } else expect(found).toBe(kept[name]);
    for (const [at, decision] of decisions.entries()) {
      const saved = JSON.parse(readFileSync(fileOf(at), 'utf8')) as JsonValue;
      expect(plainDecision(decideAgain(saved))).toEqual(decision);
    }
  });
});

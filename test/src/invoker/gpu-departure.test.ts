// The announced end of a node, and the use of its GPUs by function, as its agent handles them.
import { expect, test } from '@jest/globals';
import { gpuNoticeTable, gpuUseTable } from '@gpuwhisk/common/gpu-nodes';
import type { NodeNotice, NodeUse } from '@gpuwhisk/common/gpu-nodes';
import type { JsonValue } from '@gpuwhisk/common/json';
import { GpuHarness, placementOf, userOf } from './gpu-harness.js';

async function announce({ state, clock }: GpuHarness, inMs: number | undefined): Promise<void> {
  const at = clock.now();
  const notice: NodeNotice =
    inMs === undefined ? { why: 'given-back', at } : { why: 'revoked', at, leavesAt: at + inMs };
  await state.setRow(gpuNoticeTable, 'invoker0', notice as unknown as JsonValue);
  await clock.runFor(50);
}

test('from a notice on instances that are there take runs that end in time; all end before the node goes', async () => {
  const harness = await GpuHarness.open();
  const { agent, clock } = harness;
  const [busy, idle] = [await harness.container(placementOf(1000), 7), await harness.container(placementOf(1000), 8)];
  agent.began(userOf('a'), busy.id);
  agent.began(userOf('b'), idle.id);
  agent.ended(userOf('b'));
  let asked = 0;
  agent.onRetire(busy.id, () => (asked += 1));
  await announce(harness, 30_000);
  const { leavesAt, status } = await harness.row();
  expect(leavesAt).toBe(clock.now() - 50 + 30_000);
  const left = { state: 'leaving', reasons: ['the node is taken away'], longestRunMs: expect.closeTo(25_000, -3) };
  expect(status.map(({ health }) => health)).toEqual([left, left]);
  expect(asked).toBe(1);
  const refusal = (timeLimitMs: number | undefined, action?: string): string | undefined => {
    const user = { ...userOf('c'), ...(timeLimitMs && { timeLimitMs }), ...(action && { action }) };
    const problem = agent.admit(placementOf(1000), user);
    if (problem === undefined) agent.ended(user);
    return problem;
  };
  expect(refusal(20_000)).toBeUndefined();
  expect(refusal(26_000)).toContain('leaving');
  expect(refusal(undefined)).toContain('leaving');
  expect(refusal(1000, '/guest/another')).toContain('leaving');
  await clock.runFor(10_000);
  expect(refusal(20_000)).toContain('leaving');
  await clock.runFor(14_000);
  expect(harness.ended).toEqual([]);
  await clock.runFor(1000);
  expect(harness.ended).toEqual([busy.id, idle.id]);
  expect(agent.endingOf(busy.id)).toMatchObject({ byAction: false, again: true });
  expect(refusal(0)).toContain('draining');
});

test('a notice of no time stops runs at once, also one that is past', async () => {
  for (const inMs of [0, -60_000]) {
    const harness = await GpuHarness.open();
    const busy = await harness.container(placementOf(1000), 7);
    harness.agent.began(userOf('a'), busy.id);
    await announce(harness, inMs);
    expect(harness.ended).toEqual([busy.id]);
  }
});

test('a node that is given back lets runs end, and a withdrawn notice has it work again', async () => {
  const harness = await GpuHarness.open();
  const { agent, clock, state } = harness;
  const busy = await harness.container(placementOf(1000), 7);
  agent.began(userOf('a'), busy.id);
  await announce(harness, undefined);
  await clock.runFor(600_000);
  expect(harness.ended).toEqual([]);
  agent.ended(userOf('a'));
  expect(harness.ended).toEqual([busy.id]);
  expect(agent.admit(placementOf(1000), userOf('b'))).toContain('draining');
  await state.deleteRow(gpuNoticeTable, 'invoker0');
  expect(agent.admit(placementOf(1000), userOf('b'))).toBeUndefined();
});

test('after a restart a notice holds until its time, and not beyond', async () => {
  for (const [inMs, answer] of [
    [60_000, expect.stringContaining('leaving')],
    [-1, undefined],
  ] as const) {
    const harness = new GpuHarness();
    await announce(harness, inMs);
    const opened = await GpuHarness.open((one) =>
      Object.assign(one.state, { rows: harness.state.rows.bind(harness.state) }),
    );
    expect(opened.agent.admit(placementOf(1000), userOf('a'))).toEqual(answer);
  }
});

test('the use of GPUs is reported by namespace and action, with the time that the agent has run', async () => {
  const harness = await GpuHarness.open();
  const { agent, clock, state } = harness;
  const container = await harness.container(placementOf(1000), 7);
  agent.began(userOf('a'), container.id);
  await clock.runFor(1000);
  agent.ended(userOf('a'));
  await clock.runFor(9000);
  const use = (await state.rows(gpuUseTable)).get('invoker0') as unknown as NodeUse;
  const { action, namespace } = userOf('a');
  expect(use).toMatchObject({ devices: 2, used: [[namespace, action, 500]] });
  expect(use.upMs).toBeGreaterThanOrEqual(5000);
});

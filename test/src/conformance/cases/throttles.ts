import { expect } from '@jest/globals';
import type { Caller, Reply } from '../caller.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import { accepted, refused } from '../trial.js';
import type { Activation, Trial } from '../trial.js';

const source = 'core/controller/.../core/entitlement/RateThrottler.scala';

/** An identity with its own limits, an action `a`, a trigger `t` and a sequence `s` of `a` twice. */
async function limited(t: Trial, limits: Record<string, unknown>): Promise<Caller> {
  const caller = await t.identity(limits);
  await t.replace('actions/a', { exec: { kind: 'nodejs:default', code: echo } }, caller);
  await t.replace('actions/s', { exec: { kind: 'sequence', components: ['/_/a', '/_/a'] } }, caller);
  await t.replace('triggers/t', {}, caller);
  return caller;
}

/**
 * Posts until a request is refused with this limit. Up to twice the limit may be accepted, because a new minute may
 * begin.
 */
async function refusedAfter(t: Trial, caller: Caller, path: string, allowed: number): Promise<void> {
  let reply: Reply<{ error?: string }> | undefined;
  for (let count = 0; count < 2 * allowed + 1; count++) {
    reply = await t.post<{ error?: string }>(path, {}, caller);
    if (reply.status === 429) break;
    expect([202, 204]).toContain(reply.status);
  }
  const pattern = `^Too many requests in the last minute \\(count: \\d+, allowed: ${allowed}\\)\\.`;
  refused(reply as Reply, 429, new RegExp(pattern));
}

const rows: Row[] = [
  {
    fact: 'more invocations than a minute may have: 429',
    stands: 'ThrottleTests: throttle multiple activations of one action',
    run: async (t) => refusedAfter(t, await limited(t, { invocationsPerMinute: 3 }), 'actions/a', 3),
  },
  {
    fact: 'more fires than a minute may have: 429',
    stands: 'ThrottleTests: throttle multiple activations of one trigger',
    run: async (t) => refusedAfter(t, await limited(t, { firesPerMinute: 3 }), 'triggers/t', 3),
  },
  {
    fact: 'limits of 0 let nothing in',
    stands: 'NamespaceSpecificThrottleTests: respect overridden rate-throttles of 0',
    run: async (t) => {
      const caller = await limited(t, { invocationsPerMinute: 0, firesPerMinute: 0, concurrentInvocations: 0 });
      for (const path of ['actions/a', 'triggers/t']) await refusedAfter(t, caller, path, 0);
    },
  },
  {
    fact: 'limits of 1 let one in',
    stands: 'NamespaceSpecificThrottleTests: respect overridden rate-throttles of 1',
    run: async (t) => {
      const caller = await limited(t, { invocationsPerMinute: 1, firesPerMinute: 1 });
      for (const path of ['actions/a', 'triggers/t']) await refusedAfter(t, caller, path, 1);
    },
  },
  {
    fact: 'a sequence is one invocation',
    stands: 'NamespaceSpecificThrottleTests: respect overridden rate-throttles of 1 for sequences',
    run: async (t) => refusedAfter(t, await limited(t, { invocationsPerMinute: 1, firesPerMinute: 1 }), 'actions/s', 1),
  },
  {
    fact: 'storeActivations false: what ran is not recorded',
    stands: 'NamespaceSpecificThrottleTests: not store an activation if disabled for this namespace',
    source: 'common/scala/.../core/database/ActivationStore.scala',
    run: async (t) => {
      const caller = await limited(t, { storeActivations: false });
      const { status, body } = await t.post('actions/a?blocking=true', {}, caller);
      expect(status).toBe(200);
      // A later activation of another namespace: once its record is stored, the first one's would be, too.
      await t.run(await t.action(echo));
      refused(await t.get(`activations/${body.activationId}`, caller), 404, 'The requested resource does not exist.');
    },
  },
  {
    fact: 'no invocation at once: 429 of its own text',
    source: 'core/controller/.../core/entitlement/ActivationThrottler.scala',
    run: async (t) => {
      const caller = await limited(t, { concurrentInvocations: 0 });
      const reply = await t.post('actions/a', {}, caller);
      refused(reply, 429, /^Too many concurrent requests in flight \(count: 0, allowed: 0\)\./);
    },
  },
  {
    fact: 'a throttled namespace is refused before what it asks for is looked up',
    source: 'core/controller/.../core/entitlement/Entitlement.scala',
    run: async (t) => {
      const caller = await limited(t, { invocationsPerMinute: 0 });
      expect((await t.post('actions/nonexistent', {}, caller)).status).toBe(429);
      expect((await caller.api('POST', `${t.namespace}/actions/nonexistent`, {})).status).toBe(429);
    },
  },
  {
    fact: 'kinds that a namespace may not have: 403',
    source: 'core/controller/.../core/entitlement/KindRestrictor.scala',
    run: async (t) => {
      const caller = await t.identity({ allowedKinds: ['python:3.11'] });
      const body = { exec: { kind: 'nodejs:default', code: echo } };
      const pattern = /^The supplied authentication is not authorized to access actions of kind 'nodejs:.+'\.$/;
      refused(await t.put(`actions/${t.name('action')}`, body, caller), 403, pattern);
    },
  },
  {
    fact: "a namespace's limits are shown to it",
    source: 'core/controller/.../core/controller/Limits.scala',
    run: async (t) => {
      const caller = await t.identity({ invocationsPerMinute: 7, concurrentInvocations: 5, firesPerMinute: 3 });
      expect(accepted(await caller.api('GET', '_/limits'))).toMatchObject({
        invocationsPerMinute: 7,
        concurrentInvocations: 5,
        firesPerMinute: 3,
      });
    },
  },
  {
    fact: "a result over the namespace's own limit is cut to its own length",
    source: 'common/scala/.../core/entity/Identity.scala, core/containerpool/PekkoContainerClient.scala',
    run: async (t) => {
      const caller = await t.identity({ maxPayloadSize: '1 KB', truncationSize: '10 B' });
      const name = t.name('action');
      const code = "function main() { return { text: 'x'.repeat(2037) }; }";
      accepted(await t.put(`actions/${name}`, { exec: { kind: 'nodejs:default', code } }, caller));
      const reply = await caller.api<Activation>('POST', `_/actions/${name}?blocking=true`, {});
      expect([reply.status, reply.body.response.result]).toEqual([
        502,
        {
          error:
            'The action produced a response that exceeded the allowed length: 2048 > 1024 bytes. The truncated response was: {"text":"x',
        },
      ]);
      const { status } = await caller.api('POST', `_/actions/${name}?blocking=true`, { text: 'x'.repeat(1024) });
      expect(status).toBe(413);
    },
  },
  {
    fact: 'a blocked subject is let in no longer, an unblocked one again',
    source: 'common/scala/.../core/entity/Identity.scala',
    run: async (t) => {
      const caller = await t.identity();
      const statuses = [];
      for (const action of ['block', 'unblock']) {
        const path = `/api/v1/admin/subjects/${caller.namespace}/${action}`;
        accepted(await t.operator().send('POST', path, { body: {} }));
        statuses.push((await caller.send('GET', '/api/v1/namespaces')).status);
      }
      expect(statuses).toEqual([401, 200]);
    },
  },
];

/** Sheet 3: a namespace's limits a minute and at once. Sheet 1: limits of its own. */
export const throttleCases = table(
  'throttles',
  source,
  rows.map((row) => ({ ...row, needs: 'operator' as const })),
);

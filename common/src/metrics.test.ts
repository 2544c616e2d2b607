import { expect, test } from '@jest/globals';
import { createMetrics } from './metrics.js';

const action = { namespace: 'guest/pkg', name: 'hello', kind: 'nodejs:20', limits: { memory: 256 } };

test("activations are counted under OpenWhisk's names", async () => {
  const metrics = createMetrics();
  metrics.activationEnded(action, { startMs: 1000, endMs: 1250, waitMs: 10 }, { statusCode: 0 }, 'caller');
  metrics.activationEnded(action, { startMs: 1000, endMs: 1750, waitMs: 30, initMs: 500 }, { statusCode: 2 }, 'caller');
  metrics.activationStarted('nodejs:20', 'cold');
  metrics.activationStarted('nodejs:20', 'warm');
  metrics.activationStarted('nodejs:20', 'warm');
  const lines = (await metrics.render()).toString().split('\n');
  const labels = 'namespace="guest",initiator="caller",action="pkg/hello"';
  expect(lines).toEqual(
    expect.arrayContaining([
      `openwhisk_action_activations_total{${labels},kind="nodejs:20",memory="256"} 2`,
      `openwhisk_action_coldStarts_total{${labels}} 1`,
      `openwhisk_action_status{${labels},status="success"} 1`,
      `openwhisk_action_status{${labels},status="action_developer_error"} 1`,
      `openwhisk_action_waitTime_seconds_sum{${labels}} 0.04`,
      `openwhisk_action_waitTime_seconds_count{${labels}} 2`,
      `openwhisk_action_initTime_seconds_sum{${labels}} 0.5`,
      `openwhisk_action_initTime_seconds_count{${labels}} 1`,
      `openwhisk_action_duration_seconds_sum{${labels}} 1`,
      `openwhisk_action_duration_seconds_bucket{le="0.25",${labels}} 1`,
      'gpuwhisk_activation_starts_total{kind="nodejs:20",start="cold"} 1',
      'gpuwhisk_activation_starts_total{kind="nodejs:20",start="warm"} 2',
    ]),
  );
  expect(metrics.contentType).toContain('text/plain');
});

test("the caller is the action's namespace where it is not told", async () => {
  const metrics = createMetrics();
  metrics.activationEnded(action, { startMs: 0, endMs: 1, waitMs: 0 }, { statusCode: 0 });
  expect((await metrics.render()).toString()).toContain('namespace="guest",initiator="guest"');
});

const run = { startMs: 0, endMs: 1, waitMs: 0, initMs: 1 };
const namesIn = (text: string): Set<string> =>
  new Set([...text.matchAll(/action="([^"]*)"/g)].map(([, name]) => name ?? ''));
const totalOf = (text: string, name: string): number =>
  [...text.matchAll(new RegExp(`^${name}{.*} (\\d+)$`, 'gm'))].reduce((sum, [, count]) => sum + Number(count), 0);

test('the number of series is bounded, those last used are kept, and nothing is lost of the sums', async () => {
  const metrics = createMetrics();
  for (let number = 0; number < 5000; number++) {
    metrics.activationEnded({ ...action, name: `a${number}` }, run, { statusCode: 0 });
    metrics.activationEnded({ ...action, name: 'a0' }, run, { statusCode: 3 }); // Always in use.
  }
  const text = (await metrics.render()).toString();
  const names = namesIn(text);
  expect(names.size).toBe(501);
  expect([names.has('pkg/a0'), names.has('pkg/a1'), names.has('pkg/a4999'), names.has('(other)')]).toEqual([
    true,
    false,
    true,
    true,
  ]);
  expect(totalOf(text, 'openwhisk_action_activations_total')).toBe(10_000);
  expect(totalOf(text, 'openwhisk_action_status')).toBe(10_000);
  for (const name of ['waitTime', 'initTime', 'duration'])
    expect(totalOf(text, `openwhisk_action_${name}_seconds_count`)).toBe(10_000);
});

test('what ran since the last time is in the next text, whatever was written before', async () => {
  const metrics = createMetrics();
  metrics.activationEnded(action, run, { statusCode: 0 });
  await metrics.render();
  metrics.activationEnded({ ...action, name: 'a "quoted"\\\n' }, run, { statusCode: 1 });
  metrics.activationEnded(action, run, { statusCode: 0 });
  const text = (await metrics.render()).toString();
  expect(text).toContain('action="pkg/hello",kind="nodejs:20",memory="256"} 2');
  expect(text).toContain('action="pkg/a \\"quoted\\"\\\\\\n",status="application_error"} 1');
});

test('writing the metrics of 5,000 actions leaves the event loop to others, and those that ask at once share it', async () => {
  const metrics = createMetrics();
  for (let number = 0; number < 5000; number++)
    metrics.activationEnded({ ...action, name: `a${number}` }, run, { statusCode: 0 });
  let [turns, isDone] = [0, false];
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const [one, two] = await Promise.all([metrics.render(), metrics.render()]);
  isDone = true;
  expect(one).toBe(two);
  expect(one.length).toBeGreaterThan(1_000_000);
  expect(turns).toBeGreaterThanOrEqual(5);
});

test("results and starts are counted under OpenWhisk's names, and the SLO", async () => {
  const metrics = createMetrics();
  const times = { startMs: 0, endMs: 40, waitMs: 10 };
  metrics.activationEnded(action, { ...times, start: 'injected' }, { statusCode: 0, size: 700 }, 'caller', 50);
  metrics.activationEnded(action, { ...times, found: 'warm' }, { statusCode: 3 }, 'caller', 50);
  const result = { error: { statusCode: 404 } };
  metrics.activationEnded(action, { ...times, found: 'warm' }, { statusCode: 1, result, size: 7 }, 'caller', 49);
  const labels = 'namespace="guest",initiator="caller",action="pkg/hello"';
  const lines = (await metrics.render()).toString().split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      `openwhisk_action_memory{${labels}} 256`,
      `openwhisk_action_status_code{${labels},status_code="404"} 1`,
      `openwhisk_action_response_size_bytes_bucket{le="100",${labels}} 1`,
      `openwhisk_action_response_size_bytes_sum{${labels}} 707`,
      `counter_invoker_containerStart_counter_total{${labels},containerState="prewarmed"} 1`,
      `counter_invoker_containerStart_counter_total{${labels},containerState="warmed"} 2`,
      `gpuwhisk_action_slo_total{${labels},outcome="met"} 1`,
      `gpuwhisk_action_slo_total{${labels},outcome="missed"} 2`,
    ]),
  );
});

test('an update of kind or memory begins no second series of the same labels', async () => {
  const metrics = createMetrics();
  for (const memory of [256, 512, 256])
    metrics.activationEnded({ ...action, limits: { memory } }, run, { statusCode: 0 });
  const text = (await metrics.render()).toString();
  const series = text.split('\n').map((line) => line.replace(/ [^ ]*$/, ''));
  expect(series.filter((one, at) => one.startsWith('openwhisk') && series.indexOf(one) !== at)).toEqual([]);
  expect(text).toMatch(/memory="256"} 2\n.*memory="512"} 1\n|memory="512"} 1\n.*memory="256"} 2\n/);
  expect(text).toContain('openwhisk_action_memory{namespace="guest",initiator="guest",action="pkg/hello"} 256');
});

test('status codes that actions make up have a bounded number of series', async () => {
  const metrics = createMetrics();
  for (let code = 0; code < 100; code++)
    metrics.activationEnded(action, run, { statusCode: 0, result: { statusCode: 200 + code } });
  const text = (await metrics.render()).toString();
  expect(text.match(/^openwhisk_action_status_code{/gm)).toHaveLength(33);
  expect(text).toContain('status_code="other"} 68');
});

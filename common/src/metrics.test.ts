import { expect, test } from '@jest/globals';
import { createMetrics } from './metrics.js';

const action = { namespace: 'guest/pkg', name: 'hello', kind: 'nodejs:20', limits: { memory: 256 } };

test("activations are counted under OpenWhisk's names", async () => {
  const metrics = createMetrics();
  metrics.activationEnded(action, { startMs: 1000, endMs: 1250, waitMs: 10 }, 0, 'caller');
  metrics.activationEnded(action, { startMs: 1000, endMs: 1750, waitMs: 30, initMs: 500 }, 2, 'caller');
  metrics.activationStarted('nodejs:20', 'cold');
  metrics.activationStarted('nodejs:20', 'warm');
  metrics.activationStarted('nodejs:20', 'warm');
  const lines = (await metrics.render()).split('\n');
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
  metrics.activationEnded(action, { startMs: 0, endMs: 1, waitMs: 0 }, 0);
  expect(await metrics.render()).toContain('namespace="guest",initiator="guest"');
});

test('the number of series is bounded', async () => {
  const metrics = createMetrics();
  for (let number = 0; number < 5001; number++) {
    metrics.activationEnded({ ...action, name: `a${number}` }, { startMs: 0, endMs: 1, waitMs: 0, initMs: 1 }, 0);
  }
  const text = await metrics.render();
  expect(text).not.toContain('action="pkg/a0"');
  expect(text).toContain('action="pkg/a1"');
  expect(text).toContain('action="pkg/a5000"');
});

import { expect, test } from '@jest/globals';
import { parseStartCounts } from './api.js';

test('starts are added up over kinds', () => {
  const text = `# TYPE gpuwhisk_activation_starts_total counter
gpuwhisk_activation_starts_total{kind="nodejs:20",start="cold"} 3
gpuwhisk_activation_starts_total{kind="python:3.11",start="cold"} 2
gpuwhisk_activation_starts_total{kind="python:3.11",start="injected"} 7
gpuwhisk_activation_starts_total{kind="nodejs:20",start="warm"} 1200
openwhisk_action_coldStarts_total{namespace="guest",initiator="guest",action="a"} 9
`;
  expect(parseStartCounts(text)).toEqual({ cold: 5, prewarmed: 0, injected: 7, warm: 1200 });
});

test('an unknown start is an error', () => {
  expect(() => parseStartCounts('gpuwhisk_activation_starts_total{kind="k",start="new"} 1\n')).toThrow("'new'");
});

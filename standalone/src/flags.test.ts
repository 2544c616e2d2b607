import { expect, test } from '@jest/globals';
import { parseClusterCommand } from '@gpuwhisk/server/cluster/flags';
import { parseCommand } from './flags.js';

test('records are kept for ever in standalone, and for seven days in a cluster, unless that is set', () => {
  expect(parseCommand([], {})).toMatchObject({ config: { recordTtlHours: 168 } });
  expect(parseCommand(['--set', 'recordTtlHours=0'], {})).toMatchObject({ config: { recordTtlHours: 0 } });
  expect(parseClusterCommand(['controller', '--print-config'], {})).toMatchObject({ config: { recordTtlHours: 168 } });
  expect(() => parseCommand(['--set', 'recordTtlHours=0.5'], {})).toThrow('recordTtlHours');
});

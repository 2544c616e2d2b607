import { expect, test } from '@jest/globals';
import { createLogger } from '@gpuwhisk/common/logging';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { until } from '@gpuwhisk/common/testing/until';
import { PlatformAddresses, engineHosts } from './platform-addresses.js';

const logger = createLogger({ level: 'silent' });

test('engines are those that the configuration names', () => {
  const engines = {
    couchdb: { url: 'http://user:p%40ss@db.example:5984', prefix: 'whisk_', timeoutMs: 1 },
    kafka: {
      brokers: 'k1.example:9092,192.0.2.7:9093',
      client: 'platformatic' as const,
      topicPrefix: '',
      replicationFactor: 1,
      flush: false,
    },
    redis: { url: 'redis://[fd00::5]:6379/0', prefix: '', timeoutMs: 1, jobs: 'bull' as const },
  };
  expect(engineHosts(engines)).toEqual(['db.example', 'fd00::5', 'k1.example', '192.0.2.7']);
  expect(engineHosts({ couchdb: undefined, kafka: undefined, redis: undefined })).toEqual([]);
});

test('engines and nodes are denied, and again when their addresses change', async () => {
  const names = new Map([['db.example', ['192.0.2.1', '2001:db8::1']]]);
  let nodes = ['198.51.100.1'];
  const denied: (readonly string[])[] = [];
  const timers: (() => void)[] = [];
  const setBackgroundTimer = (_: number, run: () => void) => {
    timers.push(run);
    return { cancel: () => undefined };
  };
  const addresses = new PlatformAddresses({
    hosts: ['db.example', '192.0.2.7'],
    nodes: () => nodes,
    deny: (all) => Promise.resolve(void denied.push(all)),
    clock: { ...systemClock, setBackgroundTimer },
    logger,
    resolve: (host) => {
      const found = names.get(host);
      return found ? Promise.resolve(found) : Promise.reject(new Error('ENOTFOUND'));
    },
  });
  const refreshed = async (): Promise<void> => {
    const before = timers.length;
    timers[before - 1]?.();
    await until(() => timers.length > before);
  };
  await addresses.open();
  expect(denied).toEqual([['192.0.2.1', '192.0.2.7', '198.51.100.1', '2001:db8::1']]);

  // A name that cannot be resolved for a while keeps its addresses.
  names.clear();
  await refreshed();
  expect(denied).toHaveLength(1);

  names.set('db.example', ['192.0.2.2']);
  nodes = ['198.51.100.1', '198.51.100.2'];
  await refreshed();
  expect(denied[1]).toEqual(['192.0.2.2', '192.0.2.7', '198.51.100.1', '198.51.100.2']);
  addresses.close();
});

// Runs the longest suites first, so that no worker waits for another's last one.
import TestSequencer from '@jest/test-sequencer';
import { sep } from 'node:path';

/** Suites of more than a minute on two cores, the longest first; a fresh clone has no times of its own yet. */
const longest = [
  'docker/docker-images',
  'gpu-functions/gpu-day',
  'chaos/cluster',
  'distributed/cluster',
  'conformance/conformance',
  'native/fuzz',
  'docker/docker-factory',
  'api/fuzz',
  'console/functions',
  'platform/tutorials',
  'contract/couchdb-store',
  'console/operations',
  'functions/bad-functions',
  'contract/process-network',
  'console/docs-site',
  'platform/openapi',
  'chaos/kafka',
  'chaos/kafka-brokers',
  'chaos/redis',
  'functions/mscontainer',
  'simulation/planted-bugs',
  'functions/go',
];

const rankOf = ({ path }) => {
  const at = longest.findIndex((name) => path.endsWith(`${name}.test.js`.replaceAll('/', sep)));
  return at < 0 ? longest.length : at;
};

export default class LongestFirst extends TestSequencer {
  sort(tests) {
    return [...super.sort(tests)].sort((one, other) => rankOf(one) - rankOf(other));
  }
}

import { describe, expect, test } from '@jest/globals';
import { errorsOf } from './load.js';
import { parseWrkOutput } from './wrk.js';

const output = `Running 1s test @ http://127.0.0.1:4321
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev

RESULT {"requests":2000,"durationUs":1000000,"p50Us":250,"p95Us":900,"p99Us":1500,"maxUs":2500,"connect":0,"read":1,"write":0,"timeout":2,"status":4,"statuses":{"200":1990,"202":6,"429":4}}
`;

describe('parseWrkOutput', () => {
  test('reads the line of the script', () => {
    const result = parseWrkOutput(output);
    expect(result).toMatchObject({
      requests: 2000,
      requestsPerS: 2000,
      p50Ms: 0.25,
      p95Ms: 0.9,
      p99Ms: 1.5,
      maxMs: 2.5,
    });
    expect(result.socketErrors).toBe(3);
    expect(result.failedStatuses).toBe(4);
    expect([...result.statuses]).toEqual([
      [200, 1990],
      [202, 6],
      [429, 4],
    ]);
  });

  test('throws when wrk ended without a result, and shows its words', () => {
    expect(() => parseWrkOutput('unable to connect to 127.0.0.1:1')).toThrow('unable to connect');
  });

  test('throws for a line that lacks a figure', () => {
    expect(() => parseWrkOutput('RESULT {"requests":1,"statuses":{}}')).toThrow("'durationUs'");
  });
});

test('errors are all answers but the expected one, where statuses were counted', () => {
  const counted = parseWrkOutput(output);
  expect(errorsOf(counted, 200)).toBe(6 + 4 + 3);
  expect(errorsOf({ ...counted, statuses: new Map() }, 200)).toBe(4 + 3);
});

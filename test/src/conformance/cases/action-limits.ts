import { expect } from '@jest/globals';
import { logTexts } from '../../support/api-client.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo, sleep } from '../functions.js';
import { refused } from '../trial.js';
import type { Trial } from '../trial.js';

const exec = { kind: 'nodejs:default', code: echo };

type Choice = 'None' | 'min' | 'max';
type LimitName = 'timeout' | 'memory' | 'logs' | 'concurrency';

/** Limits of an action whose PUT names none. */
const usual = { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 };

/** The server's limits as `GET /` gives them: times in ms, sizes in bytes. */
async function limitsOf(t: Trial): Promise<Record<string, number>> {
  return (await t.user.send<{ limits: Record<string, number> }>('GET', '/')).body.limits;
}

const mebibyte = 1024 * 1024;

/** The smallest, largest and default value of a limit, in the unit of actions' limits. */
async function valuesOf(t: Trial, name: LimitName): Promise<Record<Choice, number>> {
  if (name === 'concurrency') return { None: 1, min: 1, max: 1 };
  const limits = await limitsOf(t);
  const [field, unit] = name === 'timeout' ? (['duration', 1] as const) : ([name, mebibyte] as const);
  const read = (which: string): number => (limits[`${which}_action_${field}`] ?? Number.NaN) / unit;
  return { None: usual[name], min: read('min'), max: read('max') };
}

/** The name of OpenWhisk's case, without the values that depend on the server. */
function caseName(verb: string, timeout: string, memory: string, logs: string, concurrency: string): string {
  return `ActionLimitsTests: ${verb} creation of an action with these limits: timeout: ${timeout}, memory: ${memory}, logsize: ${logs}, concurrency: ${concurrency}`;
}

const shown = (choice: Choice): string => (choice === 'None' ? choice : `(= ${choice})`);
const choices: Choice[] = ['None', 'min', 'max'];

const allowed: Row[] = choices.flatMap((timeout) =>
  choices.flatMap((memory) =>
    choices.flatMap((logs) =>
      (['None', 'min'] as const).map((concurrency) => ({
        fact: `allowed: timeout ${timeout}, memory ${memory}, logs ${logs}, concurrency ${concurrency}`,
        stands: caseName(
          'allow',
          ...([timeout, memory, logs, concurrency].map(shown) as [string, string, string, string]),
        ),
        run: async (t: Trial) => {
          const given: Partial<Record<LimitName, number>> = {};
          const expected: Partial<Record<LimitName, number>> = {};
          for (const [name, choice] of Object.entries({ timeout, memory, logs, concurrency }) as [
            LimitName,
            Choice,
          ][]) {
            expected[name] = (await valuesOf(t, name))[choice];
            if (choice !== 'None') given[name] = expected[name];
          }
          const name = t.name('action');
          await t.replace(`actions/${name}`, { exec, limits: given });
          expect((await t.get<{ limits: object }>(`actions/${name}`)).body.limits).toEqual(expected);
        },
      })),
    ),
  ),
);

/** Refusal of a limit out of bounds; `value` computes it from the server's largest value. */
function refusal(name: LimitName, what: string, value: (max: number) => number): Row {
  const fields = { timeout: 'None', memory: 'None', logs: 'None', concurrency: 'None', [name]: what };
  return {
    fact: `refused: ${name} ${what}`,
    stands: caseName('reject', fields.timeout, fields.memory, fields.logs, fields.concurrency),
    run: async (t) => {
      const limits = { [name]: value((await valuesOf(t, name)).max) };
      refused(await t.put(`actions/${t.name('action')}`, { exec, limits }), 400, /allowed threshold/);
    },
  };
}

const refusals: Row[] = [
  refusal('timeout', '0 (< min)', () => 0),
  refusal('timeout', 'max + 1 second (> max)', (max) => max + 1000),
  refusal('timeout', '10 max (> max)', (max) => 10 * max),
  refusal('memory', '0 MB (< min)', () => 0),
  refusal('memory', 'max + 1 MB (> max)', (max) => max + 1),
  refusal('memory', '5 max (> max)', (max) => 5 * max),
  refusal('logs', '5 max (> max)', (max) => 5 * max),
  refusal('concurrency', '0 (< min)', () => 0),
  refusal('concurrency', '2147483647 (> max)', () => 2_147_483_647),
];

const fill = `function main({ megabytes }) {
  const blocks = [];
  for (let at = 0; at < megabytes; at++) blocks.push(Buffer.alloc(1024 * 1024, 1));
  return { msg: 'OK, ' + blocks.length + ' MB have been filled.' };
}`;

/** An action that keeps its blocks in a variable of the module. Garbage is collected before and after each run. */
const fillAndCollect = `let blocks = [];
function main({ megabytes }) {
  global.gc();
  for (let at = 0; at < megabytes; at++) blocks.push(Buffer.alloc(1024 * 1024, 1));
  const { length } = blocks;
  blocks = [];
  global.gc();
  return { msg: 'OK, ' + length + ' MB have been filled.' };
}`;

const openFiles = `const fs = require('fs');
function main({ count }) {
  const files = [];
  let problem;
  try {
    while (files.length < count) files.push(fs.openSync('/dev/zero', 'r'));
  } catch (error) {
    console.log('ERROR: opened files = ', files.length);
    problem = error;
  }
  for (const file of files) fs.closeSync(file);
  const filesOpen = files.length;
  return problem ? { error: { filesOpen, message: { code: problem.code, syscall: problem.syscall } } } : { filesOpen };
}`;

const writeLog = `function main({ bytes = 16 }) {
  for (let at = 0; at < bytes / 16; at++) console.log('123456789abcdef');
  return { msg: Math.ceil(bytes / 16) };
}`;

const sizedResult = "function main({ size }) { return { msg: 'a'.repeat(size - 1) }; }";

/** Expects an application error with a truncated result, because the result exceeded the limit. */
function expectTruncated(response: { status: string; success: boolean; result: unknown }): void {
  expect(response).toMatchObject({ status: 'application error', success: false });
  const { error } = response.result as { error: string };
  const begin =
    'The action produced a response that exceeded the allowed length: 1048586 > 1048576 bytes. The truncated response was: ';
  expect([error.slice(0, begin.length), error.at(-1)]).toEqual([begin, 'a']);
}

const kept: Row[] = [
  {
    fact: 'over its time: a developer error that says so, and the annotation timeout',
    stands: 'ActionLimitsTests: error with a proper warning if the action exceeds its time limits',
    run: async (t) => {
      const record = await t.run(await t.action(sleep, { limits: { timeout: 500 } }), { sleepMs: 5000 });
      expect(record.response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action exceeded its time limits of 500 milliseconds.' },
      });
      expect(record.duration).toBeGreaterThanOrEqual(500);
      expect(record.annotations).toContainEqual({ key: 'timeout', value: true });
    },
  },
  {
    fact: 'within its time: success',
    stands: 'ActionLimitsTests: succeed on an action staying within its time limits',
    run: async (t) => {
      const record = await t.run(await t.action(sleep, { limits: { timeout: 10_000 } }), { sleepMs: 500 });
      expect(record.response).toMatchObject({ status: 'success', result: { slept: true } });
    },
  },
  {
    fact: 'a log over its limit is cut, and its last line says so',
    stands: 'ActionLimitsTests: succeed but truncate logs, if log size exceeds its limit',
    run: async (t) => {
      const record = await t.run(await t.action(writeLog, { limits: { logs: 1 } }), { bytes: 1.1 * mebibyte });
      expect(record.response.status).toBe('success');
      expect(record.logs.at(-1)).toContain(
        'Logs were truncated because the total bytes size exceeds the limit of 1048576 bytes.',
      );
    },
  },
  {
    fact: 'one line is one line',
    stands: 'ActionLimitsTests: succeed with one log line',
    run: async (t) => {
      const record = await t.run(await t.action(writeLog));
      expect([logTexts(record), record.response.result]).toEqual([['123456789abcdef'], { msg: 1 }]);
    },
  },
  {
    fact: 'a payload of nearly 1 MiB passes, there and back',
    stands: 'ActionLimitsTests: successfully invoke an action with a payload close to the limit (1 MB)',
    run: async (t) => {
      const given = { p: 'a'.repeat(mebibyte - 750) };
      const { status, body } = await t.invoke(await t.action(echo), given);
      expect([status, body.response.success]).toEqual([200, true]);
      expect(body.response.result).toEqual(given);
    },
  },
  {
    fact: 'a result over 1 MiB is cut (blocking)',
    stands: 'ActionLimitsTests: succeed but truncate result, if result exceeds its limit (blocking: true)',
    run: async (t) => {
      const { status, body } = await t.invoke(await t.action(sizedResult), { size: mebibyte + 1 });
      expect(status).toBe(502);
      expectTruncated(body.response);
    },
  },
  {
    fact: 'a result over 1 MiB is cut (non-blocking)',
    stands: 'ActionLimitsTests: succeed but truncate result, if result exceeds its limit (blocking: false)',
    run: async (t) => expectTruncated((await t.run(await t.action(sizedResult), { size: mebibyte + 1 })).response),
  },
  {
    fact: '994 files may be open',
    stands: 'ActionLimitsTests: successfully invoke an action when it is within nofile limit',
    needs: 'isolation',
    run: async (t) => {
      const { response } = await t.run(await t.action(openFiles), { count: 994 });
      expect([response.success, response.result]).toEqual([true, { filesOpen: 994 }]);
    },
  },
  {
    fact: '1025 may not',
    stands: 'ActionLimitsTests: fail to invoke an action when it exceeds nofile limit',
    needs: 'isolation',
    run: async (t) => {
      const record = await t.run(await t.action(openFiles), { count: 1025 });
      const { filesOpen, message } = record.response.result.error as { filesOpen: number; message: object };
      expect(record.response.success).toBe(false);
      expect(message).toEqual({ code: 'EMFILE', syscall: 'open' });
      expect(filesOpen).toBeGreaterThanOrEqual(994);
      expect(record.logs.filter((line) => line.includes('ERROR: opened files = '))).toHaveLength(1);
    },
  },
  {
    fact: 'much memory may be taken many times',
    stands: 'ActionLimitsTests: be able to run memory intensive actions multiple times by running the GC in the action',
    needs: 'isolation',
    run: async (t) => {
      const name = await t.action(fillAndCollect, { limits: { memory: 512 } });
      for (let run = 0; run < 10; run++)
        expect((await t.invoke(name, { megabytes: 128 })).body.response.result).toEqual({
          msg: 'OK, 128 MB have been filled.',
        });
    },
  },
  {
    fact: 'nearly all of the memory may be taken',
    stands: 'ActionLimitsTests: be able to run a memory intensive actions',
    needs: 'isolation',
    run: async (t) => {
      const name = await t.action(fill, { limits: { memory: 512 } });
      expect((await t.run(name, { megabytes: 512 - 100 })).response.status).toBe('success');
    },
  },
  {
    fact: 'more memory than it may have ends it',
    stands: 'ActionLimitsTests: be aborted when exceeding its memory limits',
    needs: 'isolation',
    run: async (t) => {
      const { response } = await t.run(await t.action(fill, { limits: { memory: 128 } }), { megabytes: 256 });
      expect(response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action exhausted its memory and was aborted.' },
      });
    },
  },
  {
    fact: 'an action that logs without end is ended with its time, its log kept so far',
    stands: 'ActionLimitsTests: interrupt the heavy logging action within its time limits',
    run: async (t) => {
      const code =
        "function main() { setInterval(() => console.log('The quick brown fox'), 50); return new Promise(() => {}); }";
      const { response, logs } = await t.run(await t.action(code, { limits: { timeout: 1000 } }));
      expect(response.result).toEqual({ error: 'The action exceeded its time limits of 1000 milliseconds.' });
      expect(logs.length).toBeGreaterThan(1);
      expect(logs.at(-1)).toContain('The action did not initialize or run as expected. Log data might be missing.');
    },
  },
];

/** Sheet 3: limits of actions. */
export const actionLimitCases = table('action limits', 'common/scala/.../core/entity/ActionLimits.scala', [
  ...allowed,
  ...refusals,
  ...kept,
]);

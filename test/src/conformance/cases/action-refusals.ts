import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import { refused } from '../trial.js';

const exec = { kind: 'nodejs:default', code: echo };
const limitsSource = 'common/scala/.../core/entity/ActionLimits.scala';
const execSource = 'common/scala/.../core/entity/Exec.scala';

/** A request body that creates no action, and the expected error. */
function refusal(fact: string, body: object, message: string | RegExp, source = execSource): Row {
  return {
    fact,
    source,
    run: async (t) => refused(await t.put(`actions/${t.name('action')}`, body), 400, message),
  };
}

const malformed = (detail: string): string => `The request content was malformed:\n${detail}`;

const contents: Row[] = [
  refusal('no exec when creating', {}, 'exec undefined', 'core/controller/.../core/controller/Actions.scala'),
  refusal(
    'a kind that there is not names those that are',
    { exec: { ...exec, kind: 'cobol:60' } },
    /^The request content was malformed:\nThe specified runtime 'cobol:60' is not supported by this platform\. Valid values are: '.+'(, '.+')*\.$/,
  ),
  refusal('no kind', { exec: { code: echo } }, malformed("'kind' must be a string defined in 'exec'")),
  refusal(
    'no code',
    { exec: { kind: 'nodejs:default' } },
    /^The request content was malformed:\n'code' must be a string or attachment object defined in 'exec' for 'nodejs:.+' actions$/,
  ),
  refusal(
    'main that is no text',
    { exec: { ...exec, main: 3 } },
    /^The request content was malformed:\nif defined, 'main' be a string in 'exec' for 'nodejs:.+' actions$/,
  ),
  refusal(
    'a blackbox without an image',
    { exec: { kind: 'blackbox' } },
    malformed("'image' must be a string defined in 'exec' for 'blackbox' actions"),
  ),
  refusal(
    'a sequence without components',
    { exec: { kind: 'sequence' } },
    malformed("'components' must be defined for sequence kind"),
  ),
  refusal(
    'components that are no array',
    { exec: { kind: 'sequence', components: 'a' } },
    malformed("'components' must be an array"),
  ),
  refusal(
    'a component that is a name alone',
    { exec: { kind: 'sequence', components: ['a'] } },
    malformed(
      'requirement failed: The fully qualified name of the entity must contain at least the namespace and the name of the entity.',
    ),
  ),
  {
    fact: 'the kind is trimmed and in lower case',
    source: execSource,
    run: async (t) => {
      const { status, body } = await t.put<{ exec: object }>(`actions/${t.name('action')}`, {
        exec: { ...exec, kind: ' NodeJS:Default ' },
      });
      expect([status, body.exec]).toEqual([200, { ...exec, kind: expect.stringMatching(/^nodejs:\d/), binary: false }]);
    },
  },
];

const thresholds: Row[] = [
  refusal(
    'too little memory',
    { exec, limits: { memory: 1 } },
    /^The request content was malformed:\nrequirement failed: memory 1 MB below allowed threshold of 128 MB|memory size 1 MB below allowed threshold of 128 MB/,
    limitsSource,
  ),
  refusal(
    'too much memory',
    { exec, limits: { memory: 1_000_000 } },
    /memory size 1000000 MB exceeds allowed threshold of \d+ MB/,
    limitsSource,
  ),
  refusal(
    'too large a log',
    { exec, limits: { logs: 11 } },
    /log size 11 MB exceeds allowed threshold of 10 MB/,
    limitsSource,
  ),
  refusal(
    'too little time',
    { exec, limits: { timeout: 99 } },
    /duration 99 milliseconds below allowed threshold of 100 milliseconds/,
    limitsSource,
  ),
  refusal(
    'too much time',
    { exec, limits: { timeout: 300_001 } },
    /duration 300001 milliseconds exceeds allowed threshold of 300000 milliseconds/,
    limitsSource,
  ),
  refusal(
    'too many at once in a container',
    { exec, limits: { concurrency: 2_147_483_647 } },
    /concurrency 2147483647 exceeds allowed threshold of \d+/,
    limitsSource,
  ),
  refusal(
    'none at once in a container',
    { exec, limits: { concurrency: 0 } },
    /concurrency 0 below allowed threshold of 1\b/,
    limitsSource,
  ),
  {
    fact: 'parameters of more than 1 MiB: 413',
    source: 'common/scala/.../core/entity/Parameter.scala',
    run: async (t) => {
      const parameters = [{ key: 'a', value: 'x'.repeat(1_048_576) }];
      const reply = await t.put(`actions/${t.name('action')}`, { exec, parameters });
      refused(reply, 413, /^parameters larger than allowed: \d+ > 1048576 bytes\./);
    },
  },
  {
    fact: 'annotations of more than 1 MiB: 413',
    source: 'common/scala/.../core/entity/Parameter.scala',
    run: async (t) => {
      const annotations = [{ key: 'a', value: 'x'.repeat(1_048_576) }];
      const reply = await t.put(`actions/${t.name('action')}`, { exec, annotations });
      refused(reply, 413, /^annotations larger than allowed: \d+ > 1048576 bytes\./);
    },
  },
  {
    fact: 'code of more than 48 MiB: 413',
    stands: 'ActionLimitsTests: fail on creating an action with exec which is too big',
    source: execSource,
    run: async (t) => {
      const reply = await t.put(`actions/${t.name('action')}`, { exec: { ...exec, code: 'a'.repeat(50_331_649) } });
      refused(reply, 413, /^exec larger than allowed: \d+ > 50331648 bytes\./);
    },
  },
];

/** Sheet 2: request bodies that are refused as actions. */
export const actionRefusalCases = table('action bodies', execSource, [...contents, ...thresholds]);

// Whether the OpenAPI document is true: Schemathesis calls every operation with values that the document allows and
// with others. OPENAPI_EXAMPLES: most calls of each operation in each of the tests; OPENAPI_SEED chooses other calls.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const program = fileURLToPath(new URL('../../../node_modules/.cache/schemathesis/bin/schemathesis', import.meta.url));
const lack = existsSync(program) ? undefined : 'Schemathesis is not there; npm run test:all brings it';
const suite = lack === undefined ? describe : describe.skip;
const { OPENAPI_EXAMPLES = '3', OPENAPI_SEED = '1' } = process.env;
const examples = Number(OPENAPI_EXAMPLES);
const testMs = 60_000 + examples * 12_000;

const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
];
const operators = ['Administration', 'GPUs'];
/** Existing entities, so that calls get further than to a 404. */
const there = { namespace: '_', actionName: 'act', packageName: 'pkg', triggerName: 'happened', ruleName: 'when' };

suite(`the OpenAPI document${lack ? ` (skipped: ${lack})` : ''}`, () => {
  let platform: RunningPlatform;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-openapi-'));
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40x1'] });
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await platform.stop();
  });

  /** The output of Schemathesis about operations with this key; `fixed` are values of parameters of paths. */
  function tryOut(
    auth: string,
    fixed: Record<string, string>,
    which: string[],
  ): Promise<{ code: number; out: string }> {
    const config = join(folder, 'schemathesis.toml');
    const values = Object.entries(fixed).map(([name, value]) => `${name} = "${value}"`);
    writeFileSync(config, ['[parameters]', ...values, ''].join('\n'));
    const args = [
      ...[
        '--config-file',
        config,
        'run',
        `${platform.url}/api/v1/openapi.json`,
        '--auth',
        auth,
        '--checks',
        checks.join(),
      ],
      ...['--max-examples', `${examples}`, '--seed', OPENAPI_SEED],
      // One worker, as by default: with two workers Schemathesis itself fails sometimes.
      ...['--continue-on-failure', '--no-shrink', '--suppress-health-check', 'all', '--request-timeout', '90'],
      ...which,
    ];
    return new Promise((resolve) => {
      const options = { cwd: folder, timeout: testMs, maxBuffer: 64 * 1024 * 1024 };
      execFile(program, args, options, (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code ?? 1);
        resolve({ code, out: stdout + stderr });
      });
    });
  }

  async function expectTrue(auth: string, fixed: Record<string, string>, which: string[]): Promise<void> {
    const { code, out } = await tryOut(auth, fixed, which);
    const failures = out.slice(Math.max(0, out.indexOf('= FAILURES =')), -1);
    expect([code, code === 0 ? '' : failures]).toEqual([0, '']);
    const [, generated = '0'] = /(\d+) generated/.exec(out) ?? [];
    expect(Number(generated)).toBeGreaterThan(examples);
  }

  // The calls of the coverage phase are the same each time: they must find entities.
  const all = ['--phases', 'coverage,fuzzing'];
  const ofNamespaces = operators.flatMap((tag) => ['--exclude-tag', tag]);

  test(
    'is true for names that are not there',
    () => expectTrue(platform.auth, {}, ['--phases', 'fuzzing', ...ofNamespaces]),
    testMs,
  );

  test(
    'is true for entities that are there',
    async () => {
      const { api } = platform;
      await api.putAction(there.actionName, 'function main(args) { return args; }');
      for (const [path, body] of [
        [`packages/${there.packageName}`, { publish: true }],
        [`triggers/${there.triggerName}`, {}],
        [`rules/${there.ruleName}`, { trigger: `/_/${there.triggerName}`, action: `/_/${there.actionName}` }],
      ] as const) {
        expect([path, (await api.request('PUT', `_/${path}`, body)).status]).toEqual([path, 200]);
      }
      await expectTrue(platform.auth, there, [...all, ...ofNamespaces]);
    },
    testMs,
  );

  test(
    'is true for operators',
    () =>
      expectTrue(platform.operatorAuth, { database: 'whisks', subject: 'guest', uuid: 'GPU-0' }, [
        ...all,
        ...operators.flatMap((tag) => ['--include-tag', tag]),
      ]),
    testMs,
  );
});

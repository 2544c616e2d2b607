// docs/policies.md: its example is compiled in a copy of gpu/ and makes decisions there; its table equals the registry.
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { compositionOf } from '@gpuwhisk/gpu/policies/make-policy';
import { policies } from '@gpuwhisk/gpu/policies/registry';

const run = promisify(execFile);
/** Time limits of the compiler, which takes some seconds of a quiet machine, and of the test, ms. */
const [compileMs, testMs] = [110_000, 120_000];
const root = fileURLToPath(new URL('../../..', import.meta.url));
const text = await readFile(join(root, 'docs/policies.md'), 'utf8');

/**
 * Writes a block of the page into the copy: a whole file, or lines to insert after an existing line, and their imports.
 */
async function apply(block: string, copy: string): Promise<void> {
  const [first = '', ...lines] = block.split('\n');
  const [, path, after] = /^\/\/ (gpu\/\S+?)(?:, after "(.*)")?$/.exec(first)!;
  const file = join(copy, path!);
  await mkdir(dirname(file), { recursive: true });
  if (after === undefined) return writeFile(file, lines.join('\n'));
  const [found, ...more] = (await readFile(file, 'utf8')).split(`${after}\n`);
  expect(more).toHaveLength(1);
  const imports = lines.filter((line) => line.startsWith('import '));
  const others = lines.filter((line) => line !== '' && !imports.includes(line));
  await writeFile(file, `${imports.join('\n')}\n${found}${after}\n${others.join('\n')}\n${more[0]}`);
}

test(
  'the example of a new policy compiles and decides',
  async () => {
    const copy = await mkdtemp(join(tmpdir(), 'gpuwhisk-policy-'));
    try {
      await mkdir(join(copy, 'gpu'));
      await cp(join(root, 'gpu/src'), join(copy, 'gpu/src'), {
        recursive: true,
        filter: (path) => !/test\.ts$/.test(path),
      });
      await cp(join(root, 'gpu/package.json'), join(copy, 'gpu/package.json'));
      await cp(join(root, 'tsconfig.base.json'), join(copy, 'tsconfig.base.json'));
      await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
      const options = {
        rootDir: 'src',
        outDir: 'dist',
        composite: false,
        incremental: false,
        emitDeclarationOnly: false,
      };
      // What the example imports is compiled, not all of gpu/.
      const config = { extends: '../tsconfig.base.json', compilerOptions: options, files: ['src/example.ts'] };
      await writeFile(join(copy, 'gpu/tsconfig.json'), JSON.stringify(config));
      for (const [, block] of text.matchAll(/^```ts\n([^]*?)^```$/gm)) await apply(block!, copy);
      await writeFile(
        join(copy, 'gpu/src/example.ts'),
        `import { seededRandom } from '@gpuwhisk/common/system/random';
       import { makePolicy } from './policies/make-policy.js';
       import { dividedSms, gpuOf, taskOf } from './testing/fixtures.js';
       import { viewOf } from './testing/views.js';
       const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
       const waiting = [taskOf('small', { memoryMiB: 500 }), taskOf('large', { memoryMiB: 9000 })];
       const view = viewOf({ gpus: [gpuOf('g0')], waiting });
       const { starts } = makePolicy('large-first', needs).decide(view, { kind: 'timer' });
       console.log(starts.map(({ task }) => task).join());`,
      );
      const tsc = join(root, 'node_modules/typescript-native/bin/tsc');
      const env = { ...process.env, NODE_OPTIONS: '' };
      await run(process.execPath, [tsc, '-p', join(copy, 'gpu')], { env, timeout: compileMs });
      const { stdout } = await run(process.execPath, [join(copy, 'gpu/dist/example.js')], { env, timeout: 10_000 });
      expect(stdout).toBe('large\n');
    } finally {
      await rm(copy, { recursive: true });
    }
  },
  testMs,
);

test('the table of policies is the registry', () => {
  const rows = [...text.matchAll(/^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \| (?:`([^`]+)`)? ?\| (?:`([^`]+)`)? ?\|/gm)];
  const told = rows.map(([, name, admit, order, share, place]) => [
    name,
    share === undefined ? { admit, plan: order } : { admit, order, share, place },
  ]);
  // The stages that are columns of the table; the text describes the others where a policy sets one.
  const known = Object.keys(policies).map((name) => {
    const { preempt, scale, geometry, procure, ...stages } = compositionOf(name).stages;
    expect([name, preempt, scale, geometry, procure]).toEqual([
      name,
      name === 'smore' ? 'workload-guard' : 'none',
      name === 'dilu' || name === 'protean' ? name : 'none',
      name === 'protean' ? name : 'none',
      name === 'protean' ? name : 'none',
    ]);
    return [name, stages];
  });
  expect(Object.fromEntries(told)).toEqual(Object.fromEntries(known));
});

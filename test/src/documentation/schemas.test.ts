// The JSON schemas and types for editors say what the code accepts. GOLDEN_UPDATE=1 writes the schemas.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import ts from 'typescript';
import { parse } from 'yaml';
import { GpuAnnotationError, gpuAnnotationSchema, readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import type { JsonValue } from '@gpuwhisk/common/json';
import { WskError } from '@gpuwhisk/cli/errors';
import { manifestSchema, readManifest } from '@gpuwhisk/cli/project/manifest';

const draft = 'https://json-schema.org/draft/2020-12/schema';
const fileOf = (name: string): string => fileURLToPath(new URL(`../../../cli/schemas/${name}`, import.meta.url));
const generated = {
  gpu: { $schema: draft, ...gpuAnnotationSchema() },
  manifest: manifestSchema(gpuAnnotationSchema() as Parameters<typeof manifestSchema>[0]),
};
const compile = (schema: object): ValidateFunction => new Ajv2020({ strict: false }).compile(schema);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-schemas-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(Object.entries(generated))('the file of schema %s is what the code generates', (name, schema) => {
  const text = `${JSON.stringify(schema, null, 2)}\n`;
  if (process.env['GOLDEN_UPDATE'] === '1') writeFileSync(fileOf(`${name}.json`), text);
  expect(readFileSync(fileOf(`${name}.json`), 'utf8')).toBe(text);
});

describe('annotation gpu', () => {
  const accepts = compile(generated.gpu);
  const good: JsonValue[] = [
    { memoryMiB: 1 },
    { memoryMiB: 1024 * 1024, sloMs: 0.5, class: 'training', batch: 1024, gpus: 16, model: 'm', mpsPercent: 100 },
    { memoryMiB: 5, spans: 4, features: { a: 1, b: -2.5 }, smRequest: 0.1, smLimit: 1, isolation: 'exclusive' },
    { memoryMiB: 5, gpus: 2, spans: 1, sample: { any: [] } },
    ...['a', 'pkg/a', '/ns/a', '/ns/pkg/a', 'with space/a.b-c@d&e'].map((sample) => ({ memoryMiB: 5, sample })),
    { memoryMiB: 5, model: '🌍'.repeat(200) },
  ];
  const bad: JsonValue[] = [
    {},
    [],
    'text',
    { memoryMiB: 0 },
    { memoryMiB: 1.5 },
    { memoryMiB: '512' },
    { memoryMiB: 1024 * 1024 + 1 },
    { memoryMiB: 5, other: 1 },
    { memoryMiB: 5, sloMs: 0 },
    { memoryMiB: 5, sloMs: 86_400_001 },
    { memoryMiB: 5, class: 'other' },
    { memoryMiB: 5, batch: 1025 },
    { memoryMiB: 5, gpus: 17 },
    { memoryMiB: 5, gpus: 2, spans: 2 },
    { memoryMiB: 5, model: '' },
    { memoryMiB: 5, model: '🌍'.repeat(201) },
    { memoryMiB: 5, features: { a: '1' } },
    { memoryMiB: 5, features: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`f${at}`, at])) },
    { memoryMiB: 5, mpsPercent: 101 },
    { memoryMiB: 5, smRequest: 0 },
    { memoryMiB: 5, smLimit: 1.1 },
    { memoryMiB: 5, isolation: null },
    ...['', '/a', 'a/b/c', '/a/b/c/d', 'a ', 'ä', 7].map((sample) => ({ memoryMiB: 5, sample })),
  ];
  test.each([...good.map((value) => [true, value] as const), ...bad.map((value) => [false, value] as const)])(
    'both say %j of value %#',
    (isGood, value) => {
      expect(accepts(value)).toBe(isGood);
      if (isGood) expect(readGpuAnnotation(value)).toMatchObject({ memoryMiB: expect.any(Number) });
      else expect(() => readGpuAnnotation(value)).toThrow(GpuAnnotationError);
    },
  );
});

describe('manifests', () => {
  const accepts = compile(generated.manifest);
  const action = (text: string): string => `packages: { p: { actions: { a: { function: a.js, ${text} } } } }`;
  test.each([
    [true, 'packages:'],
    [true, 'project: { name: shop, packages: { p: } }'],
    [true, action('version: 1.0, web: yes, limits: { timeout: 5, memorySize: 128 }')],
    [true, action('inputs: { plain: 1, deep: { any: [] }, long: { type: string, value: x, required: true } }')],
    [true, action('annotations: { gpu: { memoryMiB: 512, batch: 8 }, other: [1] }, include: [[a, b], [c]]')],
    [true, 'packages: { p: { sequences: { s: { actions: "a, b" } }, rules: { r: { trigger: t, action: s } } } }'],
    [true, 'packages: { p: { apis: { n: { b: { p: { a: { method: GET, response: http } } } } } } }'],
    [false, 'other: 1'],
    [false, 'packages: []'],
    [false, 'packages: { p: { actions: { a: { functoin: a.js } } } }'],
    [false, action('limits: { timeout: soon }')],
    [false, action('limits: { timeout: 1.5 }')],
    [false, action('native: maybe')],
    [false, action('web: [yes]')],
    [false, action('include: a')],
    [false, action('inputs: { long: { type: string, required: maybe } }')],
    [false, 'packages: { p: { rules: { r: { trigger: t, when: now } } } }'],
  ])('both say %j of %s', async (isGood, text) => {
    const file = join(folder, 'manifest.yaml');
    writeFileSync(file, text);
    expect(accepts(parse(text, { version: '1.1' }))).toBe(isGood);
    if (isGood) await readManifest(file);
    else await expect(readManifest(file)).rejects.toThrow(WskError);
  });

  test('an annotation gpu that the platform refuses is refused by the schema, too', () => {
    expect(accepts(parse(action('annotations: { gpu: { memoryMiB: much } }')))).toBe(false);
  });
});

test('the types for actions have the fields of annotation gpu, and find mistakes', () => {
  const types = readFileSync(fileOf('gpuwhisk.d.ts'), 'utf8');
  writeFileSync(join(folder, 'gpuwhisk.d.ts'), types);
  const fields = Object.keys(gpuAnnotationSchema()['properties'] as object).map((field) => `${field}: true`);
  const problems = (name: string, text: string): string[] => {
    const file = join(folder, name);
    writeFileSync(file, text);
    const options = { strict: true, allowJs: true, checkJs: true, noEmit: true, types: [], lib: ['lib.es2022.d.ts'] };
    const program = ts.createProgram([file], options);
    return ts
      .getPreEmitDiagnostics(program)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
  };
  const good = `import type { Action, GpuAnnotation } from './gpuwhisk';
export const main: Action<{ name?: string }, { greeting: string }> = ({ name = 'you' }) => ({ greeting: name });
export const late: Action = async () => ({ error: 'no' });
export const fields: Record<keyof GpuAnnotation, true> = { ${fields.join(', ')} };
export const gpu: GpuAnnotation = { memoryMiB: 5, class: 'training', sample: { n: 1 } };
export type Deadline = NodeJS.ProcessEnv['__OW_DEADLINE'];
`;
  expect(problems('good.ts', good)).toEqual([]);
  const bad = `/** @type {import('./gpuwhisk').Action<{ n: number }>} */
export function main({ n }) { return n.length; }
`;
  expect(problems('bad.js', bad)).not.toEqual([]);
});

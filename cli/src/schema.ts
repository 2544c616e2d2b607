import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { UsageError } from './migrate/run.js';

const folder = fileURLToPath(new URL('../schemas/', import.meta.url));
const files: Readonly<Record<string, string>> = {
  gpu: 'gpu.json',
  manifest: 'manifest.json',
  types: 'gpuwhisk.d.ts',
};

const schemaHelp = `usage: gpuwhisk schema gpu|manifest|types

Prints a JSON schema for editors (draft 2020-12): of annotation gpu, or of manifest.yaml. 'types' prints TypeScript types for actions, to be
kept as gpuwhisk.d.ts beside them. A controller serves the schemas at /api/v1/schemas/NAME.json.
`;

/** Runs `gpuwhisk schema` and returns its exit code, 0. Throws UsageError. */
export function printSchema(words: readonly string[]): number {
  const [name = '', ...others] = words;
  if (name === '--help' || name === '-h') {
    process.stdout.write(schemaHelp);
    return 0;
  }
  const file = Object.hasOwn(files, name) && others.length === 0 ? files[name] : undefined;
  if (file === undefined)
    throw new UsageError(`there is no schema '${words.join(' ')}', but ${Object.keys(files).join(', ')}`);
  process.stdout.write(readFileSync(folder + file));
  return 0;
}

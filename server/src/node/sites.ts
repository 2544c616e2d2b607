import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Site, SiteFiles } from '@gpuwhisk/controller/http/static-files';

/** Where the build puts sites. */
const folder = fileURLToPath(new URL('../../../build/', import.meta.url));

/** The sites that a controller serves. */
export const sites: readonly Site[] = [
  { root: '/console', name: 'The console', list: () => filesIn(join(folder, 'console')) },
  { root: '/docs', name: 'The documentation', list: () => filesIn(join(folder, 'docs')), hasInlinePictures: true },
];

/** Whether the documentation was built, which npm start leaves out. */
export const hasDocumentation = (): boolean => existsSync(join(folder, 'docs', 'index.html'));

async function filesIn(root: string): Promise<SiteFiles> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return new Map(paths.map((path) => [relative(root, path).replaceAll(sep, '/'), () => readFile(path)]));
}

// The tree of folders in docs/architecture.md equals the tree on disk. TREE_UPDATE=1 writes it; purposes stay
// unchanged.
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const page = join(root, 'docs/architecture.md');
/** The page's first fenced block with language `tree`. */
const fence = /(?<=^```tree\n)[^]*?(?=^```$)/m;

/** Generated or installed folders. */
const leftOut = new Set(['node_modules', 'dist', 'build', 'target', '__pycache__']);
/**
 * Packages whose folders the page names one level below src only; then folders without src whose subfolders it names.
 */
const shallow = new Set(['bench', 'research', 'test']);
const opened = new Set(['native', 'runtimes']);

async function holdsFiles(folder: string): Promise<boolean> {
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    if (entry.isFile()) return true;
    if (entry.isDirectory() && !leftOut.has(entry.name) && (await holdsFiles(`${folder}/${entry.name}`))) return true;
  }
  return false;
}

/** Folders directly below one, as paths from the root, sorted; without empty, hidden and generated ones. */
async function foldersIn(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory() && !/^\./.test(entry.name)).map(({ name }) => name);
  const paths = names.filter((name) => !leftOut.has(name)).map((name) => (folder === '' ? name : `${folder}/${name}`));
  const held = await Promise.all(paths.map(holdsFiles));
  return paths.filter((_, at) => held[at]).sort();
}

/** Paths of the tree on disk, in the order of the page. */
async function treeOnDisk(): Promise<string[]> {
  const paths: string[] = [];
  for (const top of await foldersIn('')) {
    paths.push(top);
    const hasSource = existsSync(join(root, top, 'src'));
    if (!hasSource && !opened.has(top)) continue;
    for (const first of await foldersIn(hasSource ? `${top}/src` : top)) {
      paths.push(first);
      if (hasSource && !shallow.has(top)) paths.push(...(await foldersIn(first)));
    }
  }
  return paths;
}

/** Lines of a path and its purpose, the purposes aligned. */
function blockOf(paths: readonly string[], purposes: ReadonlyMap<string, string>): string {
  const width = Math.max(...paths.map((path) => path.length)) + 2;
  return paths.map((path) => `${path.padEnd(width)}${purposes.get(path) ?? 'TODO'}\n`).join('');
}

test('the tree in docs/architecture.md is the tree on disk (TREE_UPDATE=1 writes it)', async () => {
  const text = await readFile(page, 'utf8');
  const block = fence.exec(text)?.[0] ?? '';
  const purposes = new Map(block.split('\n').map((line) => [line.split(' ')[0]!, line.replace(/^\S+ */, '')] as const));
  const paths = await treeOnDisk();
  if (process.env['TREE_UPDATE'] === '1')
    await writeFile(
      page,
      text.replace(fence, () => blockOf(paths, purposes)),
    );
  const named = (await readFile(page, 'utf8')).match(fence)?.[0] ?? '';
  const expected = blockOf(paths, purposes);
  if (named !== expected) console.log(expected);
  const told = named.split('\n').filter((line) => line !== '');
  expect(told.map((line) => line.split(' ')[0])).toEqual(paths);
  // Each folder's purpose is written by hand.
  expect(told.filter((line) => /^\S+ *(TODO.*)?$/.test(line))).toEqual([]);
});

// Files, folders and headings that README.md, CONTRIBUTING.md, GUARANTEES.md and docs name exist.
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const documents = [
  ...['README.md', 'CONTRIBUTING.md', 'GUARANTEES.md', 'gpu/README.md', 'native/README.md'],
  ...(await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
];
const texts = new Map(
  await Promise.all(documents.map(async (path) => [path, await readFile(join(root, path), 'utf8')] as const)),
);
const topFolders = (await readdir(root, { withFileTypes: true }))
  .filter((entry) => entry.isDirectory() && !/^(\.|node_modules$|build$)/.test(entry.name))
  .map(({ name }) => name);

/** The anchor that GitHub makes of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replace(/ /g, '-');
}

function anchorsOf(text: string): Set<string> {
  const plain = text.replace(/^```[^]*?^```/gm, '');
  return new Set([...plain.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!)));
}

test('every link leads to a file and a heading that exist', async () => {
  const broken: string[] = [];
  for (const [path, text] of texts) {
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue;
      const [file = '', anchor] = target!.split('#');
      const whole = file === '' ? path : join(dirname(path), file);
      if (!existsSync(join(root, whole))) broken.push(`${path}: ${target}`);
      else if (anchor !== undefined && !anchorsOf(await readFile(join(root, whole), 'utf8')).has(anchor))
        broken.push(`${path}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

test('every path of the repository in backticks exists', () => {
  const missing: string[] = [];
  // Patterns, and files that a build, a run of the bench or the reader creates.
  const elsewhere =
    /^(build\/|native\/build\b|bench\/results\/gpu-|docker\/(\.env|secrets)$)|\/(dist|node_modules)(\/|$)|[A-Z]{4,}|[*<>{}…]/;
  for (const [path, text] of texts) {
    for (const [, code] of text.replace(/^```[^]*?^```/gm, '').matchAll(/`([^`\s]+\/[^`\s]*)`/g)) {
      const named = code!.replace(/[.,;:]$/, '').replace(/:\d+$/, '');
      if (!topFolders.some((folder) => named.startsWith(`${folder}/`)) || elsewhere.test(named)) continue;
      if (!existsSync(join(root, named))) missing.push(`${path}: ${named}`);
    }
  }
  expect(missing).toEqual([]);
});

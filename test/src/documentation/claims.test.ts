// What README.md, CONTRIBUTING.md, GUARANTEES.md and docs claim of the code, beyond its files: symbols, packages, pages, metrics.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8');
const documented = /^((README|CONTRIBUTING|GUARANTEES)\.md|docs\/[^/]+\.md|(gpu|native)\/README\.md)$/;
const code = /\.([cm]?js|tsx?|jsonl?|ya?ml|j2|py|rb|php|java|go|[ch](pp)?|sh|css)$/;

/** Names that documents take from other programs' libraries, or that only their examples have. */
const others: Readonly<Record<string, readonly string[]>> = {
  'gpu/README.md': ['PodSpec', 'QueueSort', 'NormalizeScore', 'PostFilter'],
  'docs/gpu.md': ['GetState', 'GetRestoreThreadId', 'mainBatch'],
  'docs/libraries.md': ['responseHandler', 'demuxStream'],
  'docs/operations.md': ['AlterConfigs'],
  'docs/runbook.md': ['AlterConfigs'],
};

/** Folders that are made or installed. */
const leftOut = new Set(['node_modules', 'dist', 'build', 'coverage', '__pycache__', 'secrets']);

/** The files of a folder and of those in it, as paths from the root. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  const all = entries.map(async (entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isFile()) return [path];
    return entry.isDirectory() && !leftOut.has(entry.name) && !entry.name.startsWith('.') ? filesIn(path) : [];
  });
  return (await Promise.all(all)).flat();
}

const files = await filesIn('');
/** The documents without their blocks of code, by path. */
const texts = new Map<string, string>();
for (const path of files.filter((one) => documented.test(one))) {
  texts.set(path, (await read(path)).replace(/^```[^]*?^```/gm, ''));
}

test('a symbol that a document says is in a file is declared there', async () => {
  const wrong: string[] = [];
  let checked = 0;
  for (const [path, text] of texts) {
    for (const [, symbol = '', file = ''] of text.matchAll(/`(\w+)(?:\(\))?`\s+(?:in|of)\s+`([^`\s]+\.[cm]?tsx?)`/g)) {
      checked += 1;
      const declared = new RegExp(`\\b(function|const|let|class|interface|type|enum) ${symbol}\\b`);
      if (!declared.test(await read(file))) wrong.push(`${path}: ${symbol} is not declared in ${file}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(checked).toBeGreaterThan(3);
});

test('names of code in documents are names that the code has', async () => {
  const names = new Set<string>();
  for (const path of files.filter((one) => code.test(one) && !one.startsWith('test/src/documentation/'))) {
    for (const [name] of (await read(path)).matchAll(/[A-Za-z_]\w*/g)) names.add(name);
  }
  const wrong: string[] = [];
  for (const [path, text] of texts) {
    for (const [, name = ''] of text.matchAll(/`([A-Za-z][A-Za-z0-9]*)(?:\(\))?`/g)) {
      const isCode = /[a-z][A-Z]/.test(name) && others[path]?.includes(name) !== true;
      if (isCode && !names.has(name)) wrong.push(`${path}: ${name}`);
    }
  }
  expect(wrong).toEqual([]);
});

test('no document says that a package or the console is to come', async () => {
  const { workspaces } = JSON.parse(await read('package.json')) as { workspaces: string[] };
  const wrong: string[] = [];
  for (const path of ['README.md', 'CONTRIBUTING.md', 'docs/architecture.md', 'docs/console.md']) {
    for (const sentence of (await read(path)).split(/(?<=[.:|])\s|\n\n/)) {
      if (!/\b(not exist yet|to come|is planned|are planned|not built yet|under construction)\b/.test(sentence))
        continue;
      const named = workspaces.filter((name) => new RegExp(`\\b${name}\\b`).test(sentence));
      if (named.length > 0 || /\bplatform\b/.test(sentence)) wrong.push(`${path}: ${sentence.trim()}`);
    }
  }
  expect(wrong).toEqual([]);
});

test('the drawing of the packages has every package', async () => {
  const { workspaces } = JSON.parse(await read('package.json')) as { workspaces: string[] };
  const [, drawing = ''] = /^## Packages\n\n```\n([^]*?)^```$/m.exec(await read('docs/architecture.md')) ?? [];
  const missing = [...workspaces, 'native', 'runtimes'].filter((name) => !new RegExp(`\\b${name}\\b`).test(drawing));
  expect(missing).toEqual([]);
});

test('docs/console.md has every page of the console, and README names what it shows', async () => {
  const pages = [...(await read('console/src/console.tsx')).matchAll(/\{ name: '(\w+)', at: '/g)].map(
    ([, name]) => name!,
  );
  expect(pages.length).toBeGreaterThan(5);
  const [, table = ''] = /^\| page \| shows \|\n([^]*?)\n\n/m.exec(texts.get('docs/console.md') ?? '') ?? [];
  const rows = table.split('\n').map((row) => row.split('|')[1]?.trim());
  expect(pages.filter((page) => !rows.includes(page))).toEqual([]);
  const [, shown = ''] = /^\| a \[console\][^:]*: ([^|]*)\| \|$/m.exec(texts.get('README.md') ?? '') ?? [];
  const named: Readonly<Record<string, string>> = { Overview: 'GPUs', Activations: 'calls' };
  const words = shown.trim().split(', ');
  expect(words.sort()).toEqual(pages.map((page) => named[page] ?? page.toLowerCase()).sort());
});

test('CONTRIBUTING.md names every file that makes metrics', async () => {
  const makes = /^import \{[^}]*\b(Counter|Gauge|Histogram|Summary)\b[^}]*\} from 'prom-client'/m;
  const sources = files.filter((path) => /^\w+\/src\/.*\.ts$/.test(path) && !/\.test\.ts$|^(test|bench)\//.test(path));
  const making: string[] = [];
  for (const path of sources) if (makes.test(await read(path))) making.push(path);
  const [, section = ''] = /^### A metric\n([^]*?)^### /m.exec(texts.get('CONTRIBUTING.md') ?? '') ?? [];
  const named = [...section.matchAll(/`([^`\s]+\.ts)`/g)].map(([, path]) => path!);
  expect(named.sort()).toEqual(making.sort());
});

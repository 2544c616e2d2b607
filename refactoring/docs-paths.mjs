// node ./docs-paths.mjs ROOT: after the merge, rewrites moved paths in documents by the logs of refactor.mjs, fills
// purposes of new folders in the tree of docs/architecture.md, and prints what is left to do by hand.
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
const root = process.argv[2];
const moves = new Map();
for (const log of readdirSync('/tmp/house').filter((name) => /^log-.*\.jsonl$/.test(name)))
  for (const line of readFileSync(`./${log}`, 'utf8').split('\n')) {
    if (!line.startsWith('[')) continue;
    const pair = JSON.parse(line);
    if (typeof pair[0] === 'string' && typeof pair[1] === 'string' && pair[0] !== pair[1]) moves.set(pair[0], pair[1]);
  }
const has = (path) => existsSync(join(root, path));
function target(path) {
  const seen = new Set();
  let at = path;
  while (!has(at) && moves.has(at) && !seen.has(at)) { seen.add(at); at = moves.get(at); }
  return has(at) ? at : undefined;
}
/** A folder that is gone: the folder that most of its files went to. */
function folderTarget(path) {
  const counts = new Map();
  for (const old of moves.keys()) if (old.startsWith(`${path}/`)) {
    const now = target(old); if (now) counts.set(dirname(now), (counts.get(dirname(now)) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}
const documents = ['README.md', 'CONTRIBUTING.md', 'GUARANTEES.md', 'native/README.md', ...readdirSync(join(root, 'docs')).filter((n) => n.endsWith('.md')).map((n) => `docs/${n}`)];
const path = /\b(?:common|gpu|engines|controller|invoker|standalone|server|cli|bench|test|native|runtimes|scripts)\/[A-Za-z0-9_./-]*[A-Za-z0-9_]/g;
for (const document of documents) {
  const file = join(root, document);
  const before = readFileSync(file, 'utf8');
  const after = before.replace(/```tree[^]*?```|[^]+?(?=```tree|$)/g, (part) => part.startsWith('```tree') ? part : part.replace(path, (old) => {
    if (has(old)) return old;
    return target(old) ?? target(`${old}.ts`) ?? folderTarget(old) ?? old;
  }));
  if (after !== before) { writeFileSync(file, after); console.log(`rewritten: ${document}`); }
  for (const [old] of after.replace(/^```[^]*?^```/gm, '').matchAll(path))
    if (!has(old) && !has(`${old}.ts`) && /\/src\/|native\//.test(old) && !/[A-Z]{4,}|native\/build/.test(old)) console.log(`by hand: ${document}: ${old}`);
}
const page = join(root, 'docs/architecture.md');
const known = new Map(readFileSync('./tree-purposes.txt', 'utf8').split('\n').filter(Boolean).map((l) => l.split('|')));
let text = readFileSync(page, 'utf8');
// Folders whose subject has changed by the moves.
const changed = has('server') ? [['controller/src/invoke', 'checks and messages of one invocation'], ['controller/src/entities', 'stored entities: names, caches, parameters'], ['standalone', 'the platform in one process']] : [];
if (has('server')) text = text.replace('assemblies: standalone, cluster ────────┐', 'assemblies: standalone, server ─────────┐').replace('An *assembly* connects', 'An *assembly* (`server`, `standalone`) connects');
for (const [name, purpose] of changed) text = text.replace(new RegExp(`^(${name} +).*$`, 'm'), `$1${purpose}`);
writeFileSync(page, text.replace(/^(\S+)( +)TODO$/gm, (line, name, gap) => known.has(name) ? `${name}${gap}${known.get(name)}` : (console.log(`purpose by hand: ${name}`), line)));
// A path within a text of a test, which the refactoring tool does not see.
const policies = join(root, 'test/src/documentation/policies.test.ts');
if (has('gpu/src/testing/fixtures.ts')) writeFileSync(policies, readFileSync(policies, 'utf8').replace("'./policies/testing.js'", "'./testing/fixtures.js'"));
// docs/libraries.md comes with branch libs: its mentions become links.
if (has('docs/libraries.md'))
  for (const document of ['docs/architecture.md', 'docs/README.md']) {
    const file = join(root, document);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('`libraries.md`', '[libraries.md](libraries.md)'));
  }

// Checks that ESLint cannot make on a file alone: circular imports, files that have grown too long, and sums of places beside the ledger.
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { root } from './fresh.mjs';

/** Lines of a file; a longer one states its reason in its first comment: `Longer than 500 lines: <reason>`. */
const maxLines = 500;
const packages = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).workspaces;

const files = packages.flatMap((name) =>
  readdirSync(join(root, name, 'src'), { recursive: true })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(root, name, 'src', path)),
);
const texts = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));

/** Files whose values `file` imports when it is loaded; imports of types are compiled away. */
function imported(file) {
  const found = [];
  for (const [, specifier] of texts.get(file).matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)';$/gm)) {
    const own = /^@gpuwhisk\/([^/]+)\/(.+)$/.exec(specifier);
    if (own) found.push(join(root, own[1], 'src', `${own[2]}.ts`));
    else if (specifier.startsWith('.')) found.push(resolve(dirname(file), specifier).replace(/\.js$/, '.ts'));
  }
  return found.filter((path) => texts.has(path));
}

/** The circles among `graph`'s files, each as its strongly connected component (Tarjan). */
function circles(graph) {
  const order = new Map();
  const lowest = new Map();
  const stack = [];
  const found = [];
  const visit = (file) => {
    order.set(file, order.size);
    lowest.set(file, order.get(file));
    stack.push(file);
    for (const next of graph.get(file)) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) lowest.set(file, Math.min(lowest.get(file), lowest.get(next)));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const members = stack.splice(stack.indexOf(file));
    if (members.length > 1) found.push(members);
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return found;
}

const problems = circles(new Map(files.map((file) => [file, imported(file)]))).map(
  (members) => `imports in a circle: ${members.map((file) => relative(root, file)).join(', ')}`,
);
for (const [file, text] of texts) {
  const lines = text.split('\n').length - 1;
  if (lines > maxLines && !/^(\/\/|\/\*\*?)[^]*?Longer than 500 lines: /.test(text.slice(0, 1000))) {
    problems.push(`${relative(root, file)} has ${lines} lines, more than ${maxLines}`);
  }
}

/** Sums of memory, clients and shares of a place: fields, counters, and sums over who is there. */
const placeSum = [
  /^ +(?:(?:readonly|public|private) )*(?:availableMiB|freeMiB|foreignMiB|clients|busy|load|requestSum|limitSum|classSum)\??: number;/m,
  /\b(?:let|public|private) \[?(?:availableMiB|freeMiB|foreignMiB|clients|busy|requestSum|limitSum|classSum)\b.*[=:,]/,
  /\boccupants\.reduce\(/,
];
/** The ledger itself; and what really happens on simulated GPUs, and in the device machine of kernel tokens, which is no account. */
const maySum = /\/gpu\/src\/(?:ledger|simulate|testing|tokens)\/|\.test\.ts$/;
for (const [file, text] of texts) {
  if (!/\/(?:gpu\/src|controller\/src\/gpu)\//.test(file) || maySum.test(file)) continue;
  const sum = placeSum.map((pattern) => pattern.exec(text)).find((found) => found !== null);
  if (sum)
    problems.push(`${relative(root, file)} declares a sum of a place, which gpu/src/ledger is for: ${sum[0].trim()}`);
}
for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);

// Moves and merges TypeScript files of a workspace and renames symbols, and keeps every import right.
//   node refactor.mjs ROOT move OLD NEW [OLD NEW ...]        files or folders, paths from ROOT
//   node refactor.mjs ROOT merge TARGET SRC [SRC ...]        the SRCs' bodies follow TARGET's, or stand before it with --before
//   node refactor.mjs ROOT rename FILE OLDNAME NEWNAME       a top-level symbol of FILE, also where it is imported
//   node refactor.mjs ROOT unexport FILE [FILE ...]          drops `export` where no other file imports the symbol
//   node refactor.mjs ROOT small PACKAGE                     files under 60 lines with their importers
//   node refactor.mjs ROOT replay LOG FILE [FILE ...]        applies the logged moves to imports of FILEs
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';

const [rootArg, command, ...rest] = process.argv.slice(2);
const root = resolve(rootArg);
const require = createRequire(join(root, 'package.json'));
const ts = require('typescript');
const prettier = require('prettier');
const logFile = `./log-${basename(root)}.jsonl`;
const packages = ['common', 'gpu', 'engines', 'controller', 'invoker', 'server', 'standalone', 'cli', 'console', 'bench', 'test'];

function walk(dir, out = []) {
  if (!existsSync(dir)) return out;
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.name === 'node_modules' || entry.name === 'dist') continue;
    const path = join(dir, entry.name);
    if (entry.isDirectory()) walk(path, out);
    else if (entry.name.endsWith('.ts')) out.push(path);
  }
  return out;
}
const allFiles = () => packages.flatMap((name) => walk(join(root, name, 'src')));
const packageOf = (file) => relative(root, file).split('/')[0];
const parse = (file, text = readFileSync(file, 'utf8')) => ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);

/** The absolute path of the .ts file a specifier in `file` names, or undefined. */
function resolveSpecifier(file, specifier) {
  let path;
  if (specifier.startsWith('.')) path = resolve(dirname(file), specifier).replace(/\.js$/, '.ts');
  else {
    const match = /^@gpuwhisk\/([^/]+)\/(.+)$/.exec(specifier);
    if (!match) return undefined;
    path = join(root, match[1], 'src', `${match[2]}.ts`);
  }
  return path;
}
function specifierFor(file, target) {
  if (packageOf(file) === packageOf(target)) {
    const path = relative(dirname(file), target).replace(/\.ts$/, '.js');
    return path.startsWith('.') ? path : `./${path}`;
  }
  return `@gpuwhisk/${packageOf(target)}/${relative(join(root, packageOf(target), 'src'), target).replace(/\.ts$/, '')}`;
}
const toDist = (file) => join(root, packageOf(file), 'dist', relative(join(root, packageOf(file), 'src'), file));
function urlTarget(file, text) {
  const path = resolve(dirname(toDist(file)), text);
  const match = /^([^/]+)\/dist\/(.+)\.js$/.exec(relative(root, path));
  return { path, source: match ? join(root, match[1], 'src', `${match[2]}.ts`) : undefined };
}

/** Literals in a file that name modules or files beside it: [{start, end, text, kind}] */
function references(source) {
  const found = [];
  const add = (literal, kind, node) => found.push({ start: literal.getStart(source) + 1, end: literal.getEnd() - 1, text: literal.text, kind, node });
  const visit = (node) => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier) add(node.moduleSpecifier, 'import', node);
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword && node.arguments[0] && ts.isStringLiteral(node.arguments[0])) add(node.arguments[0], 'import', node);
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, 'import', node);
    else if (ts.isNewExpression(node) && node.expression.getText(source) === 'URL' && node.arguments?.[1]?.getText(source) === 'import.meta.url' && ts.isStringLiteral(node.arguments[0])) add(node.arguments[0], 'url', node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Text of a file that was at `from` and will be at `to`, with references changed by `map` (old absolute → new absolute). */
function rebased(from, to, text, map) {
  const source = parse(from, text);
  let result = text;
  for (const { start, end, text: specifier, kind } of references(source).sort((a, b) => b.start - a.start)) {
    let replacement = specifier;
    if (kind === 'import') {
      const target = resolveSpecifier(from, specifier);
      if (!target) continue;
      const moved = map.get(target) ?? target;
      if (moved === target && from === to) continue;
      replacement = specifierFor(to, moved);
    } else if (specifier.startsWith('.')) {
      const { path, source: tsFile } = urlTarget(from, specifier);
      const movedSource = tsFile && (map.get(tsFile) ?? tsFile);
      const movedPath = movedSource && movedSource !== tsFile ? toDist(movedSource).replace(/\.ts$/, '.js') : path;
      if (movedPath === path && from === to) continue;
      replacement = relative(dirname(toDist(to)), movedPath);
      if (!replacement.startsWith('.')) replacement = `./${replacement}`;
      if (specifier.endsWith('/')) replacement += '/';
    }
    if (replacement !== specifier) result = result.slice(0, start) + replacement + result.slice(end);
  }
  return result;
}

/** Imports of a file's head: [{specifier, typeOnly, names: [[name, alias]], default, namespace, start, end}] */
function imports(source) {
  return source.statements.filter(ts.isImportDeclaration).map((node) => {
    const clause = node.importClause;
    const bindings = clause?.namedBindings;
    return {
      node,
      specifier: node.moduleSpecifier.text,
      typeOnly: clause?.isTypeOnly ?? clause?.phaseModifier === ts.SyntaxKind.TypeKeyword ?? false,
      default: clause?.name?.text,
      namespace: bindings && ts.isNamespaceImport(bindings) ? bindings.name.text : undefined,
      names: bindings && ts.isNamedImports(bindings) ? bindings.elements.map((e) => ({ name: (e.propertyName ?? e.name).text, local: e.name.text, type: e.isTypeOnly })) : [],
      bare: !clause,
      start: node.getStart(source),
      end: node.getEnd(),
    };
  });
}
function printImport({ specifier, typeOnly, default: def, namespace, names, bare }) {
  if (bare) return `import '${specifier}';`;
  const parts = [];
  if (def) parts.push(def);
  if (namespace) parts.push(`* as ${namespace}`);
  if (names.length) parts.push(`{ ${names.map(({ name, local, type }) => `${type ? 'type ' : ''}${name === local ? name : `${name} as ${local}`}`).join(', ')} }`);
  return `import ${typeOnly ? 'type ' : ''}${parts.join(', ')} from '${specifier}';`;
}
/** One declaration per module and kind. */
function united(list) {
  const out = [];
  for (const each of list) {
    const same = out.find((o) => o.specifier === each.specifier && o.typeOnly === each.typeOnly && !o.namespace && !each.namespace && !o.bare && !each.bare && !(o.default && each.default && o.default !== each.default) && !(o.typeOnly && ((o.default && each.names.length) || (each.default && o.names.length))));
    if (!same) { out.push({ ...each, names: [...each.names] }); continue; }
    same.default ??= each.default;
    for (const name of each.names) if (!same.names.some((n) => n.local === name.local)) same.names.push(name);
  }
  return out;
}
/** Unites imports of the same module in a text; leaves a text without duplicates alone. */
function withUnitedImports(file, text) {
  const source = parse(file, text);
  const list = imports(source);
  const merged = united(list);
  if (merged.length === list.length) return text;
  let result = text;
  for (const each of [...list].reverse()) {
    const kept = merged.find((m) => m.node === each.node);
    let end = each.end;
    if (!kept && result[end] === '\n') end++;
    result = result.slice(0, each.start) + (kept ? printImport(kept) : '') + result.slice(end);
  }
  return result;
}
async function write(file, text) {
  const config = await prettier.resolveConfig(file);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, await prettier.format(text, { ...config, filepath: file }));
}
const git = (...args) => execFileSync('git', ['-C', root, ...args], { encoding: 'utf8' });
function dropDist(file) {
  for (const end of ['.js', '.d.ts', '.js.map', '.d.ts.map']) rmSync(toDist(file).replace(/\.ts$/, end), { force: true });
}
async function applyMap(map, but = new Set()) {
  for (const [old, now] of map) appendFileSync(logFile, JSON.stringify([relative(root, old), relative(root, now)]) + '\n');
  for (const file of allFiles()) {
    if (but.has(file)) continue;
    const text = readFileSync(file, 'utf8');
    const changed = rebased(file, file, text, map);
    if (changed !== text) await write(file, withUnitedImports(file, changed));
  }
  const olds = [...map.keys()].map((old) => relative(root, old));
  mentions(olds);
}
/** Where other files (docs, scripts, configuration) name the old paths. */
function mentions(olds) {
  for (const old of olds) {
    const needle = old.replace(/^([^/]+)\/src\//, '').replace(/\.ts$/, '');
    const wanted = needle.includes('/') ? needle : basename(old);
    let out = '';
    try { out = git('grep', '-nF', '-I', wanted, '--', ':!bench/results', ':!package-lock.json'); } catch { /* none */ }
    const lines = out.split('\n').filter((l) => l && !/from '|import\('/.test(l)).slice(0, 6);
    if (lines.length) console.log(`mentions of ${old}:\n  ${lines.map((l) => l.slice(0, 180)).join('\n  ')}`);
  }
}
function declared(source) {
  const names = new Map();
  for (const s of source.statements) {
    if (ts.isVariableStatement(s)) for (const d of s.declarationList.declarations) collect(d.name, s);
    else if ((ts.isFunctionDeclaration(s) || ts.isClassDeclaration(s) || ts.isInterfaceDeclaration(s) || ts.isTypeAliasDeclaration(s) || ts.isEnumDeclaration(s)) && s.name) names.set(s.name.text, s);
  }
  function collect(name, s) {
    if (ts.isIdentifier(name)) names.set(name.text, s);
    else for (const e of name.elements) if (!ts.isOmittedExpression(e)) collect(e.name, s);
  }
  return names;
}

async function move(pairs) {
  const map = new Map();
  for (let at = 0; at < pairs.length; at += 2) {
    const from = join(root, pairs[at]);
    const to = join(root, pairs[at + 1]);
    if (!existsSync(from)) throw new Error(`no ${pairs[at]}`);
    if (statSync(from).isDirectory()) for (const file of walk(from)) map.set(file, join(to, relative(from, file)));
    else map.set(from, to);
  }
  for (const [, to] of map) if (existsSync(to) && !map.has(to)) throw new Error(`exists: ${relative(root, to)}`);
  const moved = new Map();
  for (const [from, to] of map) {
    moved.set(to, withUnitedImports(to, rebased(from, to, readFileSync(from, 'utf8'), map)));
    dropDist(from);
  }
  for (const [from, to] of map) { mkdirSync(dirname(to), { recursive: true }); git('mv', from, to); }
  for (const [to, text] of moved) await write(to, text);
  await applyMap(map, new Set(moved.keys()));
}

async function merge(args) {
  const before = args.includes('--before');
  const [target, ...sources] = args.filter((a) => !a.startsWith('--')).map((p) => join(root, p));
  const all = before ? [...sources, target] : [target, ...sources];
  for (const file of all) if (!existsSync(file)) throw new Error(`no ${relative(root, file)}`);
  const map = new Map(sources.map((s) => [s, target]));
  const seen = new Map();
  const problems = [];
  const parts = [];
  let importList = [];
  let head = '';
  const localOf = new Map();
  for (const file of all) {
    const text = rebased(file, target, readFileSync(file, 'utf8'), map);
    const source = parse(target, text);
    for (const [name] of declared(source)) {
      if (seen.has(name)) problems.push(`${name}: declared in ${relative(root, seen.get(name))} and ${relative(root, file)}`);
      seen.set(name, file);
    }
    const own = imports(source);
    for (const each of own) {
      const inside = resolveSpecifier(target, each.specifier) === target;
      if (inside) {
        for (const n of each.names) if (n.name !== n.local) problems.push(`${relative(root, file)} imports ${n.name} as ${n.local}`);
        if (each.namespace) problems.push(`${relative(root, file)} imports * as ${each.namespace}`);
        continue;
      }
      for (const n of each.names) {
        const key = `${each.specifier}#${n.name}`;
        if (localOf.has(n.local) && localOf.get(n.local) !== key) problems.push(`${n.local}: imported as ${localOf.get(n.local)} and ${key}`);
        localOf.set(n.local, key);
      }
      importList.push(each);
    }
    // The comment before the first import is the file's header; it goes where its body goes, the target's stays on top.
    const first = source.statements[0];
    const lastImport = own.at(-1);
    let header = '';
    let body;
    if (own.length > 0) {
      header = text.slice(0, own[0].start).trim();
      body = text.slice(lastImport.end).trim();
      // statements between imports
      for (const s of source.statements) if (!ts.isImportDeclaration(s) && s.getEnd() < lastImport.start) problems.push(`${relative(root, file)}: a statement stands between imports`);
    } else body = text.trim();
    if (file === target) { head = header; parts.push(body); }
    else parts.push(header ? `${header}\n\n${body}` : body);
  }
  for (const [name, file] of seen) {
    if (localOf.has(name)) problems.push(`${name}: declared in ${relative(root, file)} and imported as ${localOf.get(name)}`);
  }
  if (problems.length) { console.error(`not merged:\n  ${problems.join('\n  ')}`); process.exit(1); }
  let list = united(importList);
  // type imports that are imported as values, too
  for (const each of list) if (each.typeOnly) each.names = each.names.filter((n) => !list.some((o) => !o.typeOnly && o.specifier === each.specifier && o.names.some((m) => m.local === n.local)));
  list = list.filter((each) => each.bare || each.default || each.namespace || each.names.length);
  const order = (s) => (s.startsWith('node:') ? 1 : s.startsWith('@gpuwhisk') ? 2 : s.startsWith('.') ? 3 : 0);
  list.sort((a, b) => order(a.specifier) - order(b.specifier));
  const text = [head, list.map(printImport).join('\n'), '', parts.join('\n\n')].filter((p, at) => at === 2 || p !== '').join('\n') + '\n';
  for (const file of sources) { git('rm', '-q', '-f', '--cached', file); rmSync(file); dropDist(file); }
  await write(target, text);
  await applyMap(map, new Set([target]));
  await unexport([target]);
  const lines = readFileSync(target, 'utf8').split('\n').length - 1;
  console.log(`${relative(root, target)}: ${lines} lines`);
}

function importersOf(file, files = allFiles()) {
  const out = [];
  for (const other of files) {
    if (other === file) continue;
    const text = readFileSync(other, 'utf8');
    if (!text.includes(basename(file, '.ts'))) continue;
    const source = parse(other, text);
    const names = new Set();
    let found = false;
    for (const ref of references(source)) {
      const target = ref.kind === 'import' ? resolveSpecifier(other, ref.text) : urlTarget(other, ref.text).source;
      if (target !== file) continue;
      found = true;
      const clause = ref.node.importClause?.namedBindings ?? ref.node.exportClause;
      if (clause?.elements) for (const e of clause.elements) names.add((e.propertyName ?? e.name).text);
      else if (ts.isImportTypeNode(ref.node) && ref.node.qualifier) names.add(ref.node.qualifier.getText(source).split('.')[0]);
      else names.add('*');
    }
    if (found) out.push({ file: other, names });
  }
  return out;
}

async function unexport(paths) {
  const files = allFiles();
  for (const file of paths) {
    const importers = importersOf(file, files);
    const used = new Set(importers.flatMap(({ names }) => [...names]));
    if (used.has('*')) continue;
    let text = readFileSync(file, 'utf8');
    const source = parse(file, text);
    const dropped = [];
    for (const statement of [...source.statements].reverse()) {
      const modifier = statement.modifiers?.find((m) => m.kind === ts.SyntaxKind.ExportKeyword);
      if (!modifier || statement.modifiers.some((m) => m.kind === ts.SyntaxKind.DefaultKeyword)) continue;
      const names = [...declared({ statements: [statement] }).keys()];
      if (names.length === 0 || names.some((n) => used.has(n))) continue;
      text = text.slice(0, modifier.getStart(source)) + text.slice(modifier.getEnd()).replace(/^\s+/, '');
      dropped.push(...names);
    }
    if (dropped.length) { await write(file, text); console.log(`no longer exported by ${relative(root, file)}: ${dropped.join(', ')}`); }
  }
}

/** Renames a binding of one file by the language service, which sees only that file. */
function renamedIn(file, text, position, name) {
  const host = {
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot: (f) => (f === file ? ts.ScriptSnapshot.fromString(text) : undefined),
    getCurrentDirectory: () => root,
    getCompilationSettings: () => ({ noResolve: true, noLib: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext }),
    getDefaultLibFileName: () => 'lib.d.ts',
    fileExists: (f) => f === file,
    readFile: (f) => (f === file ? text : undefined),
  };
  const service = ts.createLanguageService(host);
  const places = service.findRenameLocations(file, position, false, false, { providePrefixAndSuffixTextForRename: true }) ?? [];
  let result = text;
  for (const place of [...places].sort((a, b) => b.textSpan.start - a.textSpan.start)) {
    const { start, length } = place.textSpan;
    result = result.slice(0, start) + (place.prefixText ?? '') + name + (place.suffixText ?? '') + result.slice(start + length);
  }
  return result;
}
async function rename(path, oldName, newName) {
  const file = join(root, path);
  const text = readFileSync(file, 'utf8');
  const source = parse(file, text);
  const statement = declared(source).get(oldName);
  if (!statement) throw new Error(`${path} declares no ${oldName} at its top`);
  if (declared(source).has(newName)) throw new Error(`${path} has ${newName} already`);
  let position;
  const visit = (node) => { if (position === undefined && ts.isIdentifier(node) && node.text === oldName) position = node.getStart(source); else ts.forEachChild(node, visit); };
  if (ts.isVariableStatement(statement)) visit(statement.declarationList.declarations.find((d) => d.name.getText(source).includes(oldName)).name);
  else visit(statement.name);
  const importers = importersOf(file).filter(({ names }) => names.has(oldName));
  await write(file, renamedIn(file, text, position, newName));
  appendFileSync(logFile, JSON.stringify({ rename: [relative(root, file), oldName, newName] }) + '\n');
  for (const { file: other } of importers) await renameImport(other, file, oldName, newName);
  console.log(`renamed in ${1 + importers.length} files`);
}
/** Renames the import of a symbol in one file; whether it had it. */
async function renameImport(other, file, oldName, newName) {
  {
    let body = readFileSync(other, 'utf8');
    if (!body.includes(oldName)) return false;
    const parsed = parse(other, body);
    let had = false;
    for (const ref of references(parsed)) {
      if (ref.kind !== 'import' || resolveSpecifier(other, ref.text) !== file) continue;
      const clause = ref.node.importClause?.namedBindings ?? ref.node.exportClause;
      const element = clause?.elements?.find((e) => (e.propertyName ?? e.name).text === oldName);
      if (!element) continue;
      if (element.propertyName) {
        const s = element.propertyName.getStart(parsed);
        body = body.slice(0, s) + newName + body.slice(element.propertyName.getEnd());
      } else {
        body = renamedIn(other, body, element.name.getStart(parsed), newName).replace(`${oldName} as ${newName}`, newName);
      }
      had = true;
      break;
    }
    if (had) await write(other, body);
    return had;
  }
}

function small(name) {
  const files = allFiles();
  for (const file of walk(join(root, name, 'src')).sort()) {
    if (file.endsWith('.test.ts')) continue;
    const lines = readFileSync(file, 'utf8').split('\n').length - 1;
    if (lines >= 60) continue;
    const importers = importersOf(file, files).map(({ file: f }) => relative(root, f));
    const sources = importers.filter((f) => !f.endsWith('.test.ts') && !f.startsWith('test/') && !f.startsWith('bench/'));
    console.log(`${relative(root, file)} ${lines} ← ${sources.length}: ${sources.slice(0, 4).join(' ')}`);
  }
}

if (command === 'move') await move(rest);
else if (command === 'merge') await merge(rest);
else if (command === 'rename') await rename(...rest);
else if (command === 'unexport') await unexport(rest.map((p) => join(root, p)));
else if (command === 'small') small(...rest);
else if (command === 'norm') {
  // norm PATH TEXT LOG [LOG ...]: the text's imports as they are after all moves, as if it were at PATH; written back
  const [path, textFile, ...logs] = rest;
  const map = new Map();
  const renames = [];
  for (const log of logs) for (const line of readFileSync(log, 'utf8').split('\n').filter(Boolean)) {
    const entry = JSON.parse(line);
    if (entry.rename) { renames.push(entry.rename); continue; }
    const [old, now] = entry.map((p) => join(root, p));
    for (const [key, value] of map) if (value === old) map.set(key, now);
    map.set(old, now);
  }
  for (const old of [...map.keys()]) if (existsSync(old)) map.delete(old);
  const file = join(root, path);
  let text = readFileSync(textFile, 'utf8');
  text = withUnitedImports(file, rebased(file, file, text, map));
  for (const [, old, now] of renames) if (new RegExp(`\\b${old}\\b`).test(text) && !existsSync('/nonexistent')) {
    const source = parse(file, text);
    const hit = imports(source).some((i) => i.names.some((n) => n.name === old && n.local === old) && (map.size === 0 || true));
    if (hit) { let pos; const visit = (n) => { if (pos === undefined && ts.isImportSpecifier(n) && n.name.text === old) pos = n.name.getStart(source); else ts.forEachChild(n, visit); }; visit(source); text = renamedIn(file, text, pos, now).replace(`${old} as ${now}`, now); }
  }
  const config = await prettier.resolveConfig(file);
  writeFileSync(textFile, await prettier.format(text, { ...config, filepath: file }));
}
else if (command === 'docs') {
  // docs LOG [LOG ...]: old paths in all texts become new ones
  const map = new Map();
  for (const log of rest) for (const line of readFileSync(log, 'utf8').split('\n').filter(Boolean)) {
    const entry = JSON.parse(line);
    if (entry.rename) continue;
    const [old, now] = entry;
    for (const [key, value] of map) if (value === old) map.set(key, now);
    map.set(old, now);
  }
  for (const old of [...map.keys()]) if (existsSync(join(root, old))) map.delete(old);
  const variants = new Map();
  for (const [old, now] of map) {
    variants.set(old, now);
    variants.set(old.replace('/src/', '/dist/').replace(/\.ts$/, '.js'), now.replace('/src/', '/dist/').replace(/\.ts$/, '.js'));
  }
  for (const path of git('ls-files').split('\n')) {
    if (!/\.(md|json|mjs|js|cjs|ts|yml|yaml|j2|sh|cpp|h|py|svg)$|Dockerfile/.test(path) || path.startsWith('bench/results') || path === 'package-lock.json' || !existsSync(join(root, path))) continue;
    const text = readFileSync(join(root, path), 'utf8');
    const changed = text.replace(/[a-z]+\/(?:src|dist)\/[\w./-]+\.(?:ts|js)\b/g, (found) => variants.get(found) ?? found);
    if (changed !== text) { writeFileSync(join(root, path), changed); console.log(path); }
  }
}
else if (command === 'replay') {
  // replay LOG [LOG ...]: applies logged moves and renames to the imports of all files
  const map = new Map();
  const renames = [];
  for (const log of rest) {
    for (const line of readFileSync(log, 'utf8').split('\n').filter(Boolean)) {
      const entry = JSON.parse(line);
      if (entry.rename) { renames.push({ file: join(root, entry.rename[0]), old: entry.rename[1], now: entry.rename[2] }); continue; }
      const [old, now] = entry.map((p) => join(root, p));
      for (const each of renames) if (each.file === old) each.file = now;
      for (const [key, value] of map) if (value === old) map.set(key, now);
      map.set(old, now);
    }
  }
  for (const old of [...map.keys()]) if (existsSync(old)) { console.log(`there again, not mapped: ${relative(root, old)}`); map.delete(old); }
  const live = renames.filter(({ file, old }) => existsSync(file) && !declared(parse(file)).has(old));
  let changedFiles = 0;
  for (const file of allFiles()) {
    const text = readFileSync(file, 'utf8');
    let changed = rebased(file, file, text, map);
    if (changed !== text) { await write(file, withUnitedImports(file, changed)); changedFiles++; }
    for (const each of live) if (each.file !== file && changed.includes(each.old)) await renameImport(file, each.file, each.old, each.now);
  }
  console.log(`${changedFiles} files had imports mended`);
} else throw new Error(`unknown: ${command}`);

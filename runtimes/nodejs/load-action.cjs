'use strict';
// Turns the code of an action into the function that runs it.
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const Module = require('module');
const { mayImport } = require('./may-import.cjs');

/** Whether this release of Node.js runs TypeScript, by removing its types. */
const hasTypeScript = Boolean(process.features.typescript);

/** Monotonic time, ms; before any action could replace it. */
const { hrtime } = process;
function now() {
  const [seconds, nanoseconds] = hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

const plainPath = /^[A-Za-z$_][\w$]*(\.[A-Za-z$_][\w$]*)*$/;
/** Made where a name needs it: the tables of Unicode's letters take a millisecond of a start. */
let anyPath;
function isPath(name) {
  if (plainPath.test(name)) return true;
  const identifier = '[\\p{ID_Start}$_][\\p{ID_Continue}$\\u200c\\u200d]*';
  anyPath ??= new RegExp(`^${identifier}(\\.${identifier})*$`, 'u');
  return anyPath.test(name);
}
/** Of a built-in module by its name. */
const builtInImport = new RegExp(
  `\\bimport\\s*\\(\\s*(['"])(?:node:)?(${Module.builtinModules.join('|')})\\1\\s*\\)`,
  'g',
);
/** Behind a name that `require` does not find by itself. */
const endings = ['.mjs', '.cjs', '.ts', '.mts', '.cts'];
const indexFiles = ['.js', ...endings].map((ending) => `index${ending}`);
const needsModule = /import statement outside a module|Unexpected token 'export'|'import\.meta'|await is only valid/;

/**
 * Resolves with the function that `message.main` names in `message.code` (source, or an archive as base64 or bytes) as `main`, once the one that `message.entry` names,
 * if any, has been called, and with the times of both parts (`timesUs`); rejects with an error, or with a text where OpenWhisk's runtime gives only a text. Archives
 * are extracted into the current folder. All functions of source text refer to `token`. `token.stays` is set where
 * Node.js keeps things for good: ES modules, and the package.json of an archive; `token.imports` are the built-in modules
 * that the source has an `import()` of. `places` has the path of the adm-zip package, and the folder node_modules for an archive without one, or why there is none. `observer` is started and stopped for the load, without `message.entry`.
 */
async function loadAction(message, places, token = {}, observer = undefined) {
  const others = message.entry === undefined ? [] : [message.entry];
  const startedMs = now();
  token.stays = message.binary;
  const [main, entry] = await observed(observer, () =>
    message.binary
      ? loadArchive(message, others, places)
      : loadSource(message.code, checkedNames([message.main, ...others]), token),
  );
  requireFunction(main, message.main);
  const loadedMs = now();
  const timesUs = { codeUs: Math.round((loadedMs - startedMs) * 1000) };
  if (others.length > 0) {
    await requireFunction(entry, message.entry)();
    timesUs.entryUs = Math.round((now() - loadedMs) * 1000);
  }
  return { main, timesUs };
}

async function observed(observer, load) {
  observer?.start();
  try {
    return await load();
  } finally {
    observer?.stop();
  }
}

function checkedNames(names) {
  if (!names.every(isPath)) throw 'Name of main function is not valid.';
  return names;
}

function requireFunction(found, main) {
  if (typeof found !== 'function') throw `Action entrypoint '${main}' is not a function.`;
  return found;
}

function lookUp(holder, main) {
  return main.split('.').reduce((value, name) => value?.[name], holder);
}

/** A function by its path in an ES module: an export, or a member of the default export; `main` may be that itself. */
function lookUpExport(namespace, main) {
  const found = lookUp(namespace, main) ?? lookUp(namespace.default, main);
  return found ?? (main === 'main' ? namespace.default : undefined);
}

function builtInsImported(code) {
  return Array.from(code.matchAll(builtInImport), ([, , name]) => name);
}

/** The value of a name in the scope of the code, as it need not be exported. */
function inScope(name) {
  return `(() => { try { return ${name} } catch (error) { if (!(error instanceof ReferenceError)) throw error } })()`;
}

/** Source that is no JavaScript is tried as TypeScript, so that JavaScript waits for nothing of it. */
async function loadSource(code, names, token) {
  try {
    return await loadScript('index.js', code, names, token);
  } catch (error) {
    // At the end of the code, the parser of JavaScript has understood all of it.
    const mayHaveTypes = error instanceof SyntaxError && error.message !== 'Unexpected end of input';
    const typed = mayHaveTypes && hasTypeScript ? require('./types.cjs').withoutTypes(code, error) : undefined;
    if (typed === undefined) throw error;
    token.stays = true;
    return loadScript('index.ts', typed, names, token, code);
  }
}

/** `written` is the source as the developer wrote it, for the loader of ES modules, which removes types itself. */
async function loadScript(name, code, names, token, written = code) {
  const filename = path.resolve(name);
  const module = new Module(filename);
  module.filename = filename;
  module.paths = Module._nodeModulePaths(path.dirname(filename));
  if (mayImport(code)) {
    token.imports = builtInsImported(code);
    // Of what else, if it is in no comment or text.
    token.stays ||= mayImport(code.replace(builtInImport, ''));
  }
  const compile = (text) =>
    vm.compileFunction(text, ['exports', 'require', 'module', '__filename', '__dirname', '__token'], {
      filename,
      importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
  let evaluate;
  try {
    // Every function of the code refers to the scope, and with the last of these the scope to the token.
    evaluate = compile(`${code}\n;return [${names.map(inScope).join(', ')}, () => __token]`);
  } catch (error) {
    if (error instanceof SyntaxError && needsModule.test(error.message)) {
      return loadModuleSource(name.replace('.', '.m'), written, names, token);
    }
    compile(code); // What is wrong with the code alone is told without what was put behind it.
    throw error;
  }
  const require = Module.createRequire(filename);
  const found = evaluate.call(module.exports, module.exports, require, module, filename, path.dirname(filename), token);
  return found
    .slice(0, -1)
    .map((value, at) => (typeof value === 'function' ? value : (lookUp(module.exports, names[at]) ?? value)));
}

async function loadModuleSource(name, code, names, token) {
  token.stays = true;
  const file = path.resolve(name);
  fs.writeFileSync(file, code);
  const namespace = await importFile(file);
  return names.map((name) => lookUpExport(namespace, name));
}

function importFile(file) {
  return import(require('url').pathToFileURL(file).href);
}

/** Extracts the archive of an init, which does not keep it any longer: its files may take as much memory again. */
function extract(message, folder, zipLibrary) {
  const { code } = message;
  message.code = undefined;
  const archive = typeof code === 'string' ? Buffer.from(code, 'base64') : code;
  require('./extract-archive.cjs').extractArchive(archive, folder, zipLibrary);
}

async function loadArchive(message, others, { zipLibrary, installed, notInstalled }) {
  const folder = process.cwd();
  extract(message, folder, zipLibrary);
  // The packages find each other by their own paths.
  if (installed !== undefined && !fs.existsSync('node_modules')) fs.symlinkSync(installed, 'node_modules');
  if (notInstalled !== undefined) console.error(`The dependencies of package.json were not installed: ${notInstalled}`);
  // `main` is a function, or a file without its extension and a path in what it exports.
  const parts = /^(?:([^.]+)\.)?(.+)$/.exec(message.main);
  if (!parts) throw 'Name of main function is not valid.';
  const [, file, main] = parts;
  if (file === undefined && !['package.json', ...indexFiles].some((name) => fs.existsSync(name))) {
    throw 'Zipped actions must contain either package.json or index.js at the root.';
  }
  return loadFile(resolveFile(folder, file), [main, ...others]);
}

function resolveFile(folder, file) {
  const require = Module.createRequire(path.join(folder, 'index.js'));
  const wanted = file === undefined ? folder : path.join(folder, file);
  const candidates =
    file === undefined
      ? [folder, ...indexFiles.map((name) => path.join(folder, name))]
      : ['', ...endings].map((ending) => `${wanted}${ending}`);
  let missing;
  for (const candidate of candidates) {
    try {
      return require.resolve(candidate);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
      missing ??= error;
    }
  }
  throw missing;
}

async function loadFile(file, names) {
  if (/\.[mc]?ts$/.test(file) && !hasTypeScript) throw noTypeScript(path.basename(file));
  if (!isModule(file)) {
    try {
      const exported = Module.createRequire(file)(file);
      // Newer releases of Node.js load ES modules by `require`, too.
      const look = require('util').types.isModuleNamespaceObject(exported) ? lookUpExport : lookUp;
      return names.map((name) => look(exported, name));
    } catch (error) {
      if (error.code !== 'ERR_REQUIRE_ESM' && error.code !== 'ERR_REQUIRE_ASYNC_MODULE') {
        if (!(error instanceof SyntaxError && needsModule.test(error.message))) throw error;
      }
    }
  }
  const namespace = await importFile(file);
  return names.map((name) => lookUpExport(namespace, name));
}

function noTypeScript(file) {
  const kind = `nodejs:${process.versions.node.split('.')[0]}`;
  return `'${file}' is TypeScript, which ${kind} cannot run: create the action with --kind nodejs:24, or from JavaScript.`;
}

/** Whether Node.js takes the file for an ES module: by its extension, or by the package.json above it. */
function isModule(file) {
  const extension = path.extname(file);
  if (extension !== '.js' && extension !== '.ts') return extension === '.mjs' || extension === '.mts';
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const description = path.join(folder, 'package.json');
    if (fs.existsSync(description)) return JSON.parse(fs.readFileSync(description, 'utf8')).type === 'module';
    if (folder === path.dirname(folder)) return false;
  }
}

module.exports = { loadAction };

'use strict';
// Turns the code of an action into the function that runs it.
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const Module = require('module');

const identifier = '[\\p{ID_Start}$_][\\p{ID_Continue}$\\u200c\\u200d]*';
const mainPath = new RegExp(`^${identifier}(\\.${identifier})*$`, 'u');
const needsModule = /import statement outside a module|Unexpected token 'export'|'import\.meta'|await is only valid/;

/**
 * Resolves with the function that `message.main` names in `message.code`; rejects with an error, or with a text
 * where OpenWhisk's runtime gives only a text. Archives are extracted into the current folder.
 */
async function loadAction(message, zipLibrary) {
  if (message.binary) return loadArchive(message, zipLibrary);
  if (!mainPath.test(message.main)) throw 'Name of main function is not valid.';
  return requireFunction(await loadSource(message.code, message.main), message.main);
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

async function loadSource(code, main) {
  const filename = path.resolve('index.js');
  const module = new Module(filename);
  module.filename = filename;
  module.paths = Module._nodeModulePaths(path.dirname(filename));
  let evaluate;
  try {
    // The name is looked up in the scope of the code, as it need not be exported.
    evaluate = vm.compileFunction(
      `${code}\n;try { return ${main} } catch (error) { if (!(error instanceof ReferenceError)) throw error }`,
      ['exports', 'require', 'module', '__filename', '__dirname'],
      { filename, importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER },
    );
  } catch (error) {
    if (error instanceof SyntaxError && needsModule.test(error.message)) return loadModuleSource(code, main);
    throw error;
  }
  const require = Module.createRequire(filename);
  const found = evaluate.call(module.exports, module.exports, require, module, filename, path.dirname(filename));
  return typeof found === 'function' ? found : (lookUp(module.exports, main) ?? found);
}

async function loadModuleSource(code, main) {
  const file = path.resolve('index.mjs');
  fs.writeFileSync(file, code);
  return lookUpExport(await importFile(file), main);
}

function importFile(file) {
  return import(require('url').pathToFileURL(file).href);
}

async function loadArchive(message, zipLibrary) {
  const folder = process.cwd();
  require('./extract-archive.cjs').extractArchive(Buffer.from(message.code, 'base64'), folder, zipLibrary);
  // `main` is a function, or a file without its extension and a path in what it exports.
  const parts = /^(?:([^.]+)\.)?(.+)$/.exec(message.main);
  if (!parts) throw 'Name of main function is not valid.';
  const [, file, main] = parts;
  if (
    file === undefined &&
    !['package.json', 'index.js', 'index.mjs', 'index.cjs'].some((name) => fs.existsSync(name))
  ) {
    throw 'Zipped actions must contain either package.json or index.js at the root.';
  }
  const entry = resolveEntry(folder, file);
  return requireFunction(await loadFile(entry, main), message.main);
}

function resolveEntry(folder, file) {
  const require = Module.createRequire(path.join(folder, 'index.js'));
  const wanted = file === undefined ? folder : path.join(folder, file);
  const others = ['index.mjs', 'index.cjs'].map((name) => path.join(folder, name));
  const candidates = file === undefined ? [folder, ...others] : [wanted, `${wanted}.mjs`, `${wanted}.cjs`];
  for (const candidate of candidates) {
    try {
      return require.resolve(candidate);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND' || candidate === candidates.at(-1)) throw error;
    }
  }
  return undefined;
}

async function loadFile(entry, main) {
  if (!isModule(entry)) {
    try {
      return lookUp(Module.createRequire(entry)(entry), main);
    } catch (error) {
      if (error.code !== 'ERR_REQUIRE_ESM' && error.code !== 'ERR_REQUIRE_ASYNC_MODULE') {
        if (!(error instanceof SyntaxError && needsModule.test(error.message))) throw error;
      }
    }
  }
  return lookUpExport(await importFile(entry), main);
}

/** Whether Node.js takes the file for an ES module: by its extension, or by the package.json above it. */
function isModule(file) {
  const extension = path.extname(file);
  if (extension !== '.js') return extension === '.mjs';
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const description = path.join(folder, 'package.json');
    if (fs.existsSync(description)) return JSON.parse(fs.readFileSync(description, 'utf8')).type === 'module';
    if (folder === path.dirname(folder)) return false;
  }
}

module.exports = { loadAction };

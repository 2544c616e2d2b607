'use strict';
// Runs the code of a Node.js action from its own files, outside of the platform, for a debugger.
// Takes a run as a line of JSON on standard input, and answers with a line of JSON on descriptor 3.
const fs = require('fs');
const inspector = require('inspector');
const Module = require('module');
const path = require('path');
const readline = require('readline');
const { pathToFileURL } = require('url');

const needsModule = /import statement outside a module|Unexpected token 'export'|'import\.meta'|await is only valid/;
let loads = 0;
let isAttached = false;

/** As in the platform's runtime; outside of it no size is told. */
globalThis.gpuwhisk = Object.freeze({ size: () => undefined });

const tell = (message) => fs.writeSync(3, `${JSON.stringify(message)}\n`);

/** The function that `name` names in a file or folder, from its present contents. */
async function load(source, isFolder, name) {
  const folder = isFolder ? source : path.dirname(source);
  for (const file of Object.keys(require.cache)) {
    if (file.startsWith(folder + path.sep) && !file.includes(`${path.sep}node_modules${path.sep}`))
      delete require.cache[file];
  }
  const own = isFolder ? entryOf(folder) : source;
  const found = /\.m[jt]s$/.test(own) ? await imported(own, name) : await required(own, name);
  if (typeof found !== 'function') throw new Error(`Action entrypoint '${name}' is not a function.`);
  return found;
}

function entryOf(folder) {
  const others = ['mjs', 'cjs', 'ts', 'mts', 'cts'].map((ending) => path.join(folder, `index.${ending}`));
  try {
    return require.resolve(folder);
  } catch (error) {
    const other = others.find((file) => fs.existsSync(file));
    if (other === undefined) throw error;
    return other;
  }
}

async function required(file, name) {
  const module = new Module(file);
  module.filename = file;
  module.paths = Module._nodeModulePaths(path.dirname(file));
  try {
    // Behind the code, so that its lines keep their numbers: the function need not be exported.
    const look = `\n;module.inScope = (() => { try { return ${name} } catch (error) { if (!(error instanceof ReferenceError)) throw error } })();`;
    module._compile(javaScriptOf(file) + look, file);
  } catch (error) {
    if (error instanceof SyntaxError && needsModule.test(error.message)) return imported(file, name);
    throw error;
  }
  return typeof module.inScope === 'function' ? module.inScope : lookUp(module.exports, name);
}

/** The text of a file, without the types of TypeScript, on the same lines. */
function javaScriptOf(file) {
  const text = fs.readFileSync(file, 'utf8');
  if (!/\.c?ts$/.test(file)) return text;
  return Module.stripTypeScriptTypes(text);
}

async function imported(file, name) {
  // A module is loaded once for each address.
  const namespace = await import(`${pathToFileURL(file).href}?load=${++loads}`);
  return lookUp(namespace, name) ?? lookUp(namespace.default, name) ?? namespace.default;
}

function lookUp(holder, name) {
  return name.split('.').reduce((value, part) => value?.[part], holder);
}

async function run({ source, isFolder, main, value, env }) {
  Object.assign(process.env, env);
  try {
    const action = await load(source, isFolder, main);
    if (!isAttached) {
      tell({ waiting: true });
      inspector.waitForDebugger();
      isAttached = true;
    }
    const startedMs = performance.now();
    const result = await action(value);
    tell({ ok: result?.error === undefined, result: result ?? {}, runMs: performance.now() - startedMs });
  } catch (error) {
    tell({ ok: false, error: error instanceof Error ? error.stack : String(error) });
  }
}

inspector.open(0, '127.0.0.1', false);
tell({ url: inspector.url() });
let running = Promise.resolve();
readline
  .createInterface({ input: process.stdin })
  .on('line', (line) => (running = running.then(() => run(JSON.parse(line)))))
  .on('close', () => process.exit(0));

// Starts a program of a clone or a release: from its bundle, with the code that V8 compiled in an earlier run; or from its
// modules where there is no bundle.
'use strict';

const { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname, join } = require('node:path');
const { pathToFileURL } = require('node:url');
const { Script } = require('node:vm');

const root = dirname(__dirname);
/** Bundles (`NAME.cjs`) and their compiled code. */
const folder = join(root, 'build', 'programs');
/** Where compiled code is kept: a service of systemd may not write to its program's folder, but has one for this. */
const codeFolder = process.env.CACHE_DIRECTORY ?? folder;
/** The first module of each program. */
const mains = {
  standalone: 'standalone/dist/main.js',
  cluster: 'server/dist/cluster/main.js',
  wsk: 'cli/dist/wsk.js',
  wskadmin: 'cli/dist/wskadmin.js',
  gpuwhisk: 'cli/dist/gpuwhisk.js',
};
/** The packages that the programs consist of. */
const packages = ['common', 'gpu', 'engines', 'controller', 'invoker', 'server', 'standalone', 'cli'];
/** A bundle begins with a comment that holds this many hexadecimal digits of its SHA-256. */
const hashLetters = 16;

/** Whether the program has been compiled. */
const isBuilt = (name) => isThere(join(root, mains[name]));

/** Programs that serve until they are stopped. */
const servers = ['standalone', 'controller', 'invoker'];
/** A server that ran for less than this, s, printed its help or could not start: most of its code was not compiled. */
const servedS = 3;

/**
 * Runs a program in this process, with this process's arguments. `role` is what the program does: each role has
 * compiled code of its own, because V8 keeps only functions that were called.
 */
function runProgram(name, role = name) {
  const main = join(root, mains[name]);
  const file = join(folder, `${name}.cjs`);
  // A build removes the bundles before it changes modules.
  if (!isThere(file)) return void import(pathToFileURL(main).href);
  // Bundles are ASCII: V8 keeps a letter in one byte.
  const source = readFileSync(file, 'latin1');
  // The hash is in the name of the code's file, since V8 compares no more of the source than its length.
  const hash = source.slice('/*'.length, '/*'.length + hashLetters);
  const codeFile = join(codeFolder, `${role}-${hash}.code`);
  const cachedData = read(codeFile);
  const script = new Script(source, { filename: pathToFileURL(file).href, cachedData });
  // V8 rejects code of another version, or of a process with other flags.
  if (cachedData === undefined || script.cachedDataRejected) {
    // At the end, since V8 compiles most functions when they are first called.
    process.once('exit', () => {
      if (!servers.includes(role) || process.uptime() >= servedS) write(codeFile, script.createCachedData());
    });
  }
  const addressOf = (path) => pathToFileURL(join(root, path)).href;
  const importOf = (address) => import(address);
  script.runInThisContext()(createRequire(main), { exports: {} }, addressOf, importOf);
}

const isThere = (file) => statSync(file, { throwIfNoEntry: false }) !== undefined;

function read(file) {
  try {
    return readFileSync(file);
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'EACCES') return undefined;
    throw error;
  }
}

/** Writes a file whole or, where this user may not write, not at all: the next start is then as slow as this one. */
function write(file, data) {
  const unfinished = `${file}.${process.pid}`;
  try {
    const descriptor = openSync(unfinished, 'wx');
    try {
      writeSync(descriptor, data);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(unfinished, file);
  } catch {
    rmSync(unfinished, { force: true });
  }
}

module.exports = { folder, hashLetters, isBuilt, mains, packages, runProgram };

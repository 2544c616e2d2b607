// The clone's own Node.js: npm's package node-<platform>-<architecture> in the version and with the digests that own-node.txt
// pins, below build/node. scripts/node runs it on a machine whose Node.js gpuwhisk does not run on; a release carries it.
//
//   node scripts/own-node.cjs
//
// fetches that of this machine unless it is there, and prints the folder of its program.
//
// Written for every release of Node.js: it is the wrong one that runs this file.
'use strict';

var childProcess = require('child_process');
var crypto = require('crypto');
var fs = require('fs');
var path = require('path');
var zlib = require('zlib');

var root = path.dirname(__dirname);
/** Programs below it: <version>-<platform>-<architecture>/bin/node. */
var folder = path.join(root, 'build', 'node');
var pinned = readPins(fs.readFileSync(path.join(__dirname, 'own-node.txt'), 'utf8'));
var ownName = 'Node.js ' + pinned.version;
/** What a user of another release is told first. */
var needs = 'gpuwhisk needs Node.js 22 (from 22.22 on), 24 (from 24.6 on) or newer; this is ' + process.version + '.';

/** Of npm, with its retries, ms. */
var fetchTimeoutMs = 600000;
var shortTimeoutMs = 60000;
/** Age of an unfinished folder that a fetch has left behind, ms: longer than any fetch. */
var abandonedMs = 3600000;
var partialPrefix = '.partial-';
var bounds = [
  '--fetch-retries=2',
  '--fetch-retry-mintimeout=1000',
  '--fetch-retry-maxtimeout=5000',
  '--fetch-timeout=60000',
];
var noRegistry =
  /\b(E(NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|NETUNREACH|HOSTUNREACH|TIMEDOUT|SOCKETTIMEDOUT)|ERR_SOCKET_TIMEOUT)\b/;
/** The loaders of glibc, for which the packages are made. */
var loaders = { 'linux-x64': '/lib64/ld-linux-x86-64.so.2', 'linux-arm64': '/lib/ld-linux-aarch64.so.1' };

/** The version in the first line; after it a platform, an architecture and the digest of its package in each line. */
function readPins(text) {
  var lines = text.trim().split('\n');
  var digests = {};
  lines.slice(1).forEach(function (line) {
    var words = line.split(' ');
    digests[words[0]] = words[1];
  });
  return { version: lines[0], digests: digests };
}

/** The path of a program, there or not, for a platform and an architecture; by default this machine's. */
function pathOf(platform, architecture) {
  var key = (platform || process.platform) + '-' + (architecture || process.arch);
  return path.join(folder, pinned.version + '-' + key, 'bin', 'node');
}

/**
 * The path of the own Node.js for a platform (`linux`) and an architecture (`x64`, `arm64`), by default this machine's. It is
 * fetched by npm, so from the registry and through the proxy of npm's settings, and verified, unless it is there. Throws an Error
 * whose message is one line that says what to do.
 */
function ownNode(platform, architecture) {
  var key = (platform || process.platform) + '-' + (architecture || process.arch);
  var isThis = key === process.platform + '-' + process.arch;
  if (!pinned.digests[key]) throw new Error('There is none to fetch for ' + key + ': install Node.js 24.');
  if (isThis && !fs.existsSync(loaders[key])) {
    throw new Error('The one to fetch needs glibc, which this machine lacks: install Node.js 24.');
  }
  var program = pathOf(platform, architecture);
  // That of another machine is taken to be whole, as it was put there in one step.
  if (isThis ? problemOf(program) === undefined : fs.existsSync(program)) return program;
  console.error('Fetching ' + ownName + (isThis ? '' : ' for ' + key) + ' (once) ...');
  makeFolder(folder);
  removeAbandoned();
  var partial = fs.mkdtempSync(path.join(folder, partialPrefix));
  try {
    fetchInto(partial, key);
    var fetched = path.join(partial, 'package');
    var problem = isThis ? problemOf(path.join(fetched, 'bin', 'node')) : undefined;
    if (problem !== undefined) throw new Error(ownName + ' does not run on this machine: ' + problem);
    putInPlace(fetched, path.dirname(path.dirname(program)), path.join(partial, 'damaged'));
  } finally {
    remove(partial);
  }
  return program;
}

/** Why a program is not the pinned version, or does not run; undefined if it does. */
function problemOf(program) {
  var told = childProcess.spawnSync(program, ['--version'], { encoding: 'utf8', timeout: shortTimeoutMs });
  if (told.error) return told.error.message;
  if (told.stdout.trim() === 'v' + pinned.version) return undefined;
  return told.stderr.trim().split('\n')[0] || 'it tells ' + (told.stdout.trim() || 'no version');
}

/** Fetches the package, verifies it, and unpacks its program and licence into `partial`/package. */
function fetchInto(partial, key) {
  var name = 'node-' + key + '@' + pinned.version;
  var words = ['pack', name, '--loglevel=error'].concat(bounds);
  var options = { cwd: partial, encoding: 'utf8', timeout: fetchTimeoutMs, killSignal: 'SIGKILL' };
  var npm = childProcess.spawnSync('npm', words, options);
  if (npm.error || npm.status !== 0) throw new Error(explain(npm));
  var archive = fs.readdirSync(partial).filter(isArchive)[0];
  var bytes = fs.readFileSync(path.join(partial, archive));
  var digest = 'sha512-' + crypto.createHash('sha512').update(bytes).digest('base64');
  if (digest !== pinned.digests[key]) {
    throw new Error("npm's registry has another package " + name + ' than gpuwhisk was made with: ' + digest + '.');
  }
  var wanted = ['package/bin/node', 'package/LICENSE'];
  // Node.js decompresses faster than gzip, which tar would call.
  var input = zlib.gunzipSync(bytes);
  var unpacked = run('tar', ['-xf', '-'].concat(wanted), { cwd: partial, input: input, timeout: shortTimeoutMs });
  if (unpacked !== undefined) throw new Error(name + ' could not be unpacked: ' + unpacked);
  // A program that is found after a crash of the machine is whole.
  var descriptor = fs.openSync(path.join(partial, 'package', 'bin', 'node'), 'r');
  fs.fsyncSync(descriptor);
  fs.closeSync(descriptor);
}

function isArchive(file) {
  return /\.tgz$/.test(file);
}

/** Why npm has fetched nothing, and what to do. */
function explain(npm) {
  var printed = String(npm.stdout || '') + String(npm.stderr || '');
  var failed = ownName + ' could not be fetched: ';
  var retry = ', and try again, or install Node.js 24.';
  if (npm.error && npm.error.code === 'ENOENT') return failed + 'npm was not found. Install Node.js 24 with npm.';
  if (npm.error && npm.error.code === 'ETIMEDOUT') {
    return failed + 'npm did not end in ' + fetchTimeoutMs / 60000 + ' minutes. Check the network' + retry;
  }
  if (/\bENOSPC\b/.test(printed)) return failed + 'the disk is full. Free about 1 GB, and try again.';
  var code = noRegistry.exec(printed);
  var settings = "Check the network and npm's settings 'registry' and 'proxy'";
  if (code) return failed + 'npm cannot reach its registry (' + code[0] + '). ' + settings + retry;
  var lines = printed.split('\n').filter(isTold);
  var reason = lines[0] || (npm.error && npm.error.message) || 'npm ended with ' + npm.status;
  return failed + reason + '. ' + settings + retry;
}

function isTold(line) {
  return /^npm (error|ERR!) (?!code )/.test(line);
}

/** Runs a program; returns what went wrong, in a line, or undefined. */
function run(program, words, options) {
  var result = childProcess.spawnSync(program, words, options);
  if (result.error) return result.error.message;
  return result.status === 0 ? undefined : String(result.stderr).trim().split('\n')[0];
}

/** Renames a whole folder to its name. Another process may be the first; a damaged folder there gives way. */
function putInPlace(fetched, target, aside) {
  if (fs.existsSync(target) && problemOf(path.join(target, 'bin', 'node')) !== undefined) fs.renameSync(target, aside);
  try {
    fs.renameSync(fetched, target);
  } catch (error) {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
  }
}

function makeFolder(wanted) {
  if (fs.existsSync(wanted)) return;
  makeFolder(path.dirname(wanted));
  try {
    fs.mkdirSync(wanted);
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

/** Removes the folders of fetches that were ended in between. */
function removeAbandoned() {
  fs.readdirSync(folder)
    .filter(isPartial)
    .forEach(function (name) {
      var partial = path.join(folder, name);
      if (Date.now() - fs.statSync(partial).mtime.getTime() > abandonedMs) remove(partial);
    });
}

function isPartial(name) {
  return name.indexOf(partialPrefix) === 0;
}

/** Removes a folder of ours; old releases of Node.js have no call for that. */
function remove(unwanted) {
  childProcess.spawnSync('rm', ['-rf', unwanted], { timeout: shortTimeoutMs });
}

module.exports = { needs: needs, ownNode: ownNode, pathOf: pathOf };

if (require.main === module) {
  try {
    console.log(path.dirname(ownNode()));
  } catch (error) {
    console.error(needs + ' ' + error.message);
    process.exit(1);
  }
}

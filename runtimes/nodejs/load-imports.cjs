'use strict';
// Loads what the action is known to need, before its code comes.
const fs = require('fs');
const { createRequire } = require('module');

const imports = process.env.GPUWHISK_IMPORTS.split(' ').filter(Boolean);
const isLearned = process.env.GPUWHISK_LEARNED !== undefined;
delete process.env.GPUWHISK_IMPORTS;
delete process.env.GPUWHISK_LEARNED;

if (isLearned) loadLearned();
else loadDeclared();

function loadDeclared() {
  for (const name of imports) {
    try {
      require(name);
    } catch (error) {
      console.error(`Module '${name}' of annotation 'warm' was not loaded: ${error.message.split('\n')[0]}`);
    }
  }
}

/** Loads what functions of a namespace have required. Ends the process if a module does what only its function may do. */
function loadLearned() {
  const requireShared = createRequire(`${process.env.NODE_PATH}/`);
  // Makes what is no module's: libuv's threads, and the handles of the streams.
  fs.stat('/', () => {});
  void [process.stdout, process.stderr];
  for (const name of imports) {
    const [threads, sockets, pending] = [threadCount(), socketCount(), process.getActiveResourcesInfo()];
    try {
      requireShared(name);
    } catch (error) {
      refuse(name, String(error?.message ?? error).split('\n')[0]);
    }
    if (threadCount() !== threads) refuse(name, 'it started a thread');
    if (socketCount() !== sockets) refuse(name, 'it opened a socket');
    const [left] = leftGoing(pending);
    if (left !== undefined) refuse(name, `it left something going on: ${left}`);
  }
}

function refuse(name, reason) {
  fs.writeSync(2, `Module '${name}' cannot be loaded ahead of functions: ${reason}\n`);
  process.exit(1);
}

function threadCount() {
  return fs.readdirSync('/proc/self/task').length;
}

function socketCount() {
  return fs.readdirSync('/proc/self/fd').filter(isSocket).length;
}

function isSocket(number) {
  try {
    return fs.readlinkSync(`/proc/self/fd/${number}`).startsWith('socket:');
  } catch (error) {
    if (error.code === 'ENOENT') return false; // It was that of the list itself.
    throw error;
  }
}

/**
 * Kinds of timers, requests and handles that keep the event loop going and are not among `before`. Immediates are over after
 * a turn of the loop; Node.js sets some itself, after collections.
 */
function leftGoing(before) {
  const known = [...before];
  return process.getActiveResourcesInfo().filter((kind) => {
    const at = known.indexOf(kind);
    if (at !== -1) known.splice(at, 1);
    return at === -1 && kind !== 'Immediate';
  });
}

// Work that goes on behind the server that npm start becomes; the server asks for it by invoker/src/host/behind.ts.
import { fork } from 'node:child_process';

/** Works by name: `promise`, `settle(failure)` until it is settled, and the process that does it. */
const works = new Map();

/** Works that take many seconds, for who waits for them. */
const titles = { injection: 'the injection of functions', gpu: 'the sharing of GPUs', standIn: 'simulated GPUs' };

function addWork(name, child) {
  let resolve;
  let reject;
  const promise = new Promise((...settlers) => ([resolve, reject] = settlers));
  // A failure is for who asks, and printed when it comes.
  promise.catch(() => undefined);
  const work = { promise, child, isOver: false };
  work.settle = (failure) => {
    if (work.isOver) return;
    work.isOver = true;
    if (failure === undefined) return resolve();
    work.failure = failure;
    reject(new Error(failure));
  };
  works.set(name, work);
}

/**
 * Starts a program that does these works in its own order. It sends `{work, failure}` at the end of each, with a line if it
 * failed, and is sent the names of works to do first. It ends with this process, which does not wait for it. Resolves when it
 * has ended, with whether all works are done.
 */
export function startBehind(program, names) {
  const child = fork(program, ['--behind', ...names], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execArgv: [] });
  for (const name of names) addWork(name, child);
  child.on('message', ({ work, failure }) => {
    if (failure !== undefined) console.error(failure);
    works.get(work).settle(failure);
  });
  child.unref();
  child.channel.unref();
  return new Promise((resolve) => {
    const end = (why) => {
      const left = names.map((name) => works.get(name)).filter(({ isOver }) => !isOver);
      const failure = `The build behind the server ${why}: the next start goes on with it.`;
      if (left.length > 0) console.error(failure);
      for (const work of left) work.settle(failure);
      resolve(names.every((name) => works.get(name).failure === undefined));
    };
    child.once('error', ({ message }) => end(`could not be started (${message})`));
    // After its last message, which its exit can overtake.
    child.once('close', (code, signal) => end(`ended with ${signal ?? code}`));
  });
}

globalThis[Symbol.for('gpuwhisk.behind')] = {
  /** Whether the work is under way. */
  isComing: (name) => works.get(name)?.isOver === false,
  /** Resolves when the work is done, at once if there is none of the name; rejects with its line if it failed. */
  async ready(name) {
    const work = works.get(name);
    if (work?.isOver === false && !work.isWanted) {
      work.isWanted = true;
      if (name in titles) console.log(`Building ${titles[name]} (once) ...`);
      if (work.child.connected) work.child.send(name);
    }
    await work?.promise;
  },
};

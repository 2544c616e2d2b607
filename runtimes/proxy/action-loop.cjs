'use strict';
// A program that serves all runs, by OpenWhisk's action loop: a line of JSON on its standard input starts a run, a line
// on its descriptor 3 answers it. Once it has loaded it says so by {"ok":true}.
const { spawn } = require('child_process');
const { maxPayloadBytes } = require('../nodejs/channel.cjs');

/** Programs made for older versions of the loop do not say that they have loaded; ms. */
const unsaidReadyMs = 1000;
const newline = 10;
const notStarted = 'Cannot start action. Check logs for details.';

/**
 * Starts `command` with the name of the main function; a program in the file `exec` instead if there is no command.
 * Resolves once it is ready; rejects with a text if it ends or refuses before that.
 */
async function load({ placed, command, main }) {
  if (placed === undefined) throw 'Missing main/no code to execute.';
  const [program = './exec', ...words] = command;
  const child = spawn(program, [...words, main ?? 'main'], { stdio: ['pipe', 'inherit', 'inherit', 'pipe'] });
  const lines = new Lines(child.stdio[3]);
  child.stdin.on('error', () => undefined); // Its end is noticed below.
  child.on('error', (error) => {
    console.error(error.message);
    lines.end();
  });
  child.on('exit', () => lines.end());
  // A launcher of ours always says that it has loaded; a program of the action's own may not.
  let said = lines.next();
  const first = command.length > 0 ? await said : await Promise.race([said, late(unsaidReadyMs)]);
  if (first === undefined || (first !== late && !isReady(first))) throw notStarted;
  if (first !== late) said = undefined;
  /** The next answer. A program that was late says now that it has loaded, or it answers at once. */
  const nextAnswer = async () => {
    const waited = said;
    said = undefined;
    const line = await (waited ?? lines.next());
    return waited && line !== undefined && isReady(line) ? lines.next() : line;
  };
  let last = Promise.resolve();
  return {
    run(message) {
      const answered = last.then(async () => {
        child.stdin.write(`${JSON.stringify(message)}\n`);
        const line = await nextAnswer();
        if (line === undefined) throw 'command exited';
        return line;
      });
      last = answered.catch(() => undefined);
      return answered;
    },
  };
}

/** Resolves with itself after `ms`. */
function late(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms, late));
}

function isReady(line) {
  try {
    const said = JSON.parse(line);
    return said.ok === true && Object.keys(said).length === 1;
  } catch {
    return false;
  }
}

/** The lines of a stream, one at a time; undefined once it has ended. */
class Lines {
  #held = [];
  #heldBytes = 0;
  #ready = [];
  #waiting = [];
  #ended = false;

  constructor(stream) {
    stream.on('data', (chunk) => this.#push(chunk));
    stream.on('end', () => this.end());
    stream.on('error', () => this.end());
  }

  next() {
    if (this.#ready.length > 0) return Promise.resolve(this.#ready.shift());
    if (this.#ended) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  end() {
    this.#ended = true;
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
  }

  #push(chunk) {
    let rest = chunk;
    for (let at = rest.indexOf(newline); at >= 0; at = rest.indexOf(newline)) {
      const line = Buffer.concat([...this.#held, rest.subarray(0, at)]).toString('utf8');
      this.#held = [];
      this.#heldBytes = 0;
      rest = rest.subarray(at + 1);
      const resolve = this.#waiting.shift();
      if (resolve) resolve(line);
      else this.#ready.push(line);
    }
    this.#held.push(rest);
    this.#heldBytes += rest.length;
    if (this.#heldBytes > maxPayloadBytes) this.end();
  }
}

module.exports = { load };

'use strict';
// A program that is started for every run, as OpenWhisk's dockerskeleton does: the argument is its last word and its
// standard input, the last line that it prints is the result.
const { spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const { maxPayloadBytes } = require('../nodejs/channel.cjs');

/** Longer arguments are given on standard input alone: the kernel's MAX_ARG_STRLEN. */
const maxWordBytes = 131071;
const newline = 10;

/** Resolves with the action; rejects with a text if there is no program. Without any code it is OpenWhisk's stub. */
async function load({ placed }) {
  const stub = '{"error":"This is a stub action. Replace it with custom logic."}';
  if (placed === undefined) return { run: () => stub };
  const program = path.resolve('exec');
  try {
    if (!fs.statSync(program).isFile()) throw new Error('exec is not a file');
  } catch (error) {
    console.error(error.message);
    throw 'The action failed to generate or locate a binary. See logs for details.';
  }
  return { run: (message, environment) => runProgram(program, message.value ?? {}, environment) };
}

/** Resolves with the last line, without the space around it. */
function runProgram(program, value, environment) {
  const argument = spacedJson(value);
  const words = argument.length > maxWordBytes ? [] : [argument];
  return new Promise((resolve, reject) => {
    // The descriptor of the frames is closed to it.
    const stdio = ['pipe', 'pipe', 'inherit', 'ignore'];
    const child = spawn(program, words, { stdio, env: { ...process.env, ...environment } });
    const lines = new LastLine((bytes) => process.stdout.write(bytes));
    child.on('error', (error) => {
      console.log(error.message);
      reject('The action did not return a dictionary or array.');
    });
    child.stdin.on('error', () => undefined); // It may end without having read its argument.
    child.stdout.on('data', (chunk) => {
      if (lines.push(chunk)) return;
      child.kill('SIGKILL');
      reject(`The action produced a response that is longer than ${maxPayloadBytes} bytes.`);
    });
    child.on('close', () => resolve(lines.end()));
    child.stdin.end(argument);
  });
}

/** Passes on all that is printed but the last line. */
class LastLine {
  #print;
  #held = [];
  #heldBytes = 0;

  constructor(print) {
    this.#print = print;
  }

  /** Whether the line so far is of a possible length. */
  push(chunk) {
    // A newline at the very end may end the last line.
    const at = chunk.lastIndexOf(newline, -2);
    const endsLine = this.#heldBytes > 0 && this.#held.at(-1).at(-1) === newline;
    if (at >= 0 || endsLine) {
      for (const part of this.#held) this.#print(part);
      if (at >= 0) this.#print(chunk.subarray(0, at + 1));
      this.#held = [];
      this.#heldBytes = 0;
    }
    const rest = at >= 0 ? chunk.subarray(at + 1) : chunk;
    this.#held.push(rest);
    this.#heldBytes += rest.length;
    return this.#heldBytes <= maxPayloadBytes;
  }

  end() {
    return Buffer.concat(this.#held).toString('utf8').trim();
  }
}

/** JSON as Python writes it, which scripts that cut it up by hand expect: spaces after `,` and `:`, ASCII only. */
function spacedJson(value) {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, member]) => `${asciiText(key)}: ${spacedJson(member)}`);
    return `{${members.join(', ')}}`;
  }
  return typeof value === 'string' ? asciiText(value) : JSON.stringify(value);
}

function asciiText(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

module.exports = { load };

'use strict';
// Errors as a developer reads them: without frames of the runtime, which tell where it lies on the host.
const path = require('path');

const escaped = path.dirname(__dirname).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** A line of a stack; `{` follows the last one where fields of the error do. */
const ownFrame = new RegExp(`\\n *at [^\\n]*${escaped}/[^\\n]*?( \\{)?(?=\\n|$)`, 'g');

/** The text of a stack, or one that contains stacks, without the runtime's frames. */
function withoutOwnFrames(text) {
  return text.replace(ownFrame, '$1');
}

const missing = /^Cannot find (?:module|package) '([^'./][^']*)'/;

/** A line with the remedy if `error` tells of a package that is not there, else an empty text. */
function remedyOf(error) {
  const { message } = error instanceof Error ? error : {};
  const [, name] = missing.exec(typeof message === 'string' ? message : '') ?? [];
  if (name === undefined) return '';
  return `\nName '${name}' in the dependencies of a package.json, run npm install, and create the action from a zip of the folder.`;
}

/** As console.error prints the error after `words`, without the runtime's frames, and with a remedy if there is one. */
function formatError(error, ...words) {
  return `${withoutOwnFrames(require('util').format(...words, error))}${remedyOf(error)}`;
}

module.exports = { formatError, withoutOwnFrames };

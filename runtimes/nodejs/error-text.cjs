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

/** What JavaScript's parser says of types, and a line that may have one. */
const ofTypes = /^(?:Unexpected (?:token ':'|identifier|strict mode reserved word)|Missing initializer in const)/;
const typed = /^[^\n]*:\d+\n[^\n]*(?:\w\s*\??:\s*\w|\b(?:interface|type|enum|declare|as)\s+\w)/;

/** A line with the remedy if `error` tells of a package that is not there, or perhaps of TypeScript, else an empty text. */
function remedyOf(error) {
  const { message } = error instanceof Error ? error : {};
  const text = typeof message === 'string' ? message : '';
  const [, name] = missing.exec(text) ?? [];
  if (name !== undefined) {
    return `\nName '${name}' in the dependencies of a package.json, run npm install, and create the action from a zip of the folder.`;
  }
  if (error instanceof SyntaxError && ofTypes.test(text) && typed.test(error.stack) && !process.features.typescript) {
    return '\nIf the code is TypeScript, create the action with --kind nodejs:24: this release of Node.js cannot run it.';
  }
  return '';
}

/** As console.error prints the error after `words`, without the runtime's frames, and with a remedy if there is one. */
function formatError(error, ...words) {
  return `${withoutOwnFrames(require('util').format(...words, error))}${remedyOf(error)}`;
}

module.exports = { formatError, withoutOwnFrames };

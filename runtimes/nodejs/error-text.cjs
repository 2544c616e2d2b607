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

/** As console.error prints these values, without the runtime's frames. */
function formatError(...values) {
  return withoutOwnFrames(require('util').format(...values));
}

module.exports = { formatError, withoutOwnFrames };

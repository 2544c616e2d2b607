'use strict';
// TypeScript of a single file: its types are removed by this release of Node.js, and all else keeps its line and column.
const Module = require('module');
const path = require('path');

/** Line and column of an error of a parser, which begins its stack with the place, some lines, and a mark below the last. */
const marked = /^[^\n]*:(\d+)\n(?:[^\n]*\n)*?([ \t]*)\^/;

/**
 * The code without its types; undefined if it has none, or if it is no TypeScript either. `error` is that of the parser of
 * JavaScript. Throws that of the parser of TypeScript if it has understood more of the code, or if `error` names no place, as
 * of an ES module.
 */
function withoutTypes(code, error) {
  let stripped;
  try {
    stripped = quietly(() => Module.stripTypeScriptTypes(code));
  } catch (other) {
    const place = marked.exec(error.stack);
    const isTyped = other.code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX';
    if (place && !isTyped && !isFurther(marked.exec(other.stack), place)) return undefined;
    // The parser does not know the file's name.
    other.stack = other.stack.replace(/^(?=:\d)/, path.resolve(place || isTyped ? 'index.ts' : 'index.mjs'));
    throw other;
  }
  return stripped === code ? undefined : stripped;
}

/** Calls `work` without the warning of Node.js that it is new. */
function quietly(work) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

function isFurther(place, other) {
  const lines = Number(place?.[1]) - Number(other[1]);
  return lines > 0 || (lines === 0 && place[2].length > other[2].length);
}

module.exports = { withoutTypes };

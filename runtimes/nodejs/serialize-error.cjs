'use strict';
const { withoutOwnFrames } = require('./error-text.cjs');

/** Fields of an error that are not enumerable but belong in its JSON. */
const hiddenFields = ['name', 'message', 'stack', 'code', 'cause'];
const maxDepth = 16;

/** A plain copy of what a promise was rejected with, fit for JSON: fields of errors included, cycles cut. */
function serializeError(value) {
  if (typeof value === 'function') return `[Function: ${value.name || 'anonymous'}]`;
  if (typeof value === 'bigint' || typeof value === 'symbol') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  return copy(value, []);
}

function copy(from, above) {
  if (typeof from.toJSON === 'function' && !(from instanceof Error)) return from.toJSON();
  const path = [...above, from];
  const to = Array.isArray(from) ? [] : {};
  for (const [key, value] of Object.entries(from)) {
    if (typeof value === 'function') continue;
    to[key] = copyField(value, path);
  }
  if (from instanceof Error) {
    for (const key of hiddenFields) {
      if (from[key] !== undefined && from[key] !== null) to[key] = copyField(from[key], path);
    }
    if (typeof to.stack === 'string') to.stack = withoutOwnFrames(to.stack);
  }
  return to;
}

function copyField(value, path) {
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? String(value) : value;
  if (Buffer.isBuffer(value)) return '[object Buffer]';
  if (path.includes(value) || path.length >= maxDepth) return '[Circular]';
  return copy(value, path);
}

module.exports = { serializeError };

'use strict';
const { apply } = Reflect;
const { indexOf } = String.prototype;

/** Whether the text may have an `import()`: a keyword is spelt without escapes. Relies on no built-in that an action may change. */
function mayImport(text) {
  return apply(indexOf, text, ['import']) !== -1;
}

module.exports = { mayImport };

'use strict';
// The engine's collector, which --expose-gc would give: the flag at the start would cost every start.
const v8 = require('v8');
const vm = require('vm');

/**
 * The function `gc(options)` of a context of its own. What it returns, and it itself, lead to that
 * context's constructors; no code of an action may get hold of either.
 */
function exposeCollector() {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc');
  v8.setFlagsFromString('--no-expose-gc');
  return collect;
}

module.exports = { exposeCollector };

'use strict';

/**
 * What tells kernel tokens when a launch cycle begins, `begin(batch)`, and ends, `end()`; undefined where the library of
 * native/tokens is not loaded before this program.
 */
function launchCycles() {
  const libraries = (process.env.LD_PRELOAD ?? '').split(/[: ]/);
  const library = libraries.find((path) => path.endsWith('/libgpuwhisk-tokens.so'));
  if (library === undefined) return undefined;
  const loaded = { exports: {} };
  try {
    process.dlopen(loaded, library);
  } catch (error) {
    console.error(`Launch cycles are not marked: ${error.message}`);
    return undefined;
  }
  return loaded.exports;
}

module.exports = { launchCycles };

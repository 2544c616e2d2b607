'use strict';
// Loads what the action is known to need, before its code comes.

const imports = process.env.GPUWHISK_IMPORTS.split(' ').filter(Boolean);
delete process.env.GPUWHISK_IMPORTS;
for (const name of imports) {
  try {
    require(name);
  } catch (error) {
    console.error(`Module '${name}' of annotation 'warm' was not loaded: ${error.message.split('\n')[0]}`);
  }
}

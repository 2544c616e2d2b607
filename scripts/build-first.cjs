// Builds a clone whose command is used before anything has been built.
'use strict';

const { spawnSync } = require('node:child_process');
const { join } = require('node:path');

/** Ends the process if the build fails. Its progress goes to stderr, since stdout is the command's. */
function buildFirst(command) {
  console.error(`${command} is not built yet; building (once) ...`);
  const build = spawnSync(process.execPath, [join(__dirname, 'build.mjs')], { stdio: ['ignore', 2, 2] });
  if (build.status !== 0) process.exit(1);
}

module.exports = { buildFirst };

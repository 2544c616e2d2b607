'use strict';
// Compiles a native function: init builds it, a run returns the shared object. Words: the C compiler, and the C++
// compiler if there is one. One source file is taken as C if it compiles as C, else as C++; an archive's files by
// their endings.
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');

const notBuilt = 'The action failed to generate or locate a binary. See logs for details.';
const include = path.join(__dirname, '..', 'cuda'); // gpuwhisk_sim.h
const flags = ['-O2', '-shared', '-fPIC', '-fno-omit-frame-pointer', '-Wl,-z,noexecstack', `-I${include}`];
const endings = { '.c': 'c', '.cc': 'cpp', '.cpp': 'cpp', '.cxx': 'cpp' };

/** Resolves with the action whose run gives `{"program": base64}`; rejects with a text, the reason is on stderr. */
async function load({ placed, command: [c, cpp] }) {
  if (placed === undefined) throw 'Missing main/no code to execute.';
  const compilers = { c, cpp };
  const object = path.resolve('function.so');
  const attempts = fs.existsSync('function.src')
    ? ['c', 'cpp'].map((language) => ({ language, files: ['-x', language === 'c' ? 'c' : 'c++', 'function.src'] }))
    : [archive()];
  let reasons = '';
  for (const { language, files } of attempts) {
    if (!compilers[language]) continue;
    const built = spawnSync(compilers[language], [...flags, '-o', object, ...files, '-lm'], { encoding: 'utf8' });
    if (built.status === 0) {
      process.stderr.write(built.stderr);
      return { run: () => JSON.stringify({ program: fs.readFileSync(object, 'base64') }) };
    }
    reasons += built.error ? `${built.error.message}\n` : built.stderr;
  }
  process.stderr.write(reasons || 'There is no compiler for this source.\n');
  throw notBuilt;
}

function archive() {
  const files = fs.readdirSync('.').filter((name) => endings[path.extname(name)] !== undefined);
  if (files.length === 0) {
    console.error('There are no C or C++ files.');
    throw notBuilt;
  }
  return { language: files.some((name) => endings[path.extname(name)] === 'cpp') ? 'cpp' : 'c', files };
}

module.exports = { load };

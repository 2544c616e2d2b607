'use strict';
// Compiles a Go action: init builds it, a run returns the program. Words: the program go, its version such as 1.22.
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');

const notBuilt = 'The action failed to generate or locate a binary. See logs for details.';
const identifier = /^[\p{L}_][\p{L}\p{Nd}_]*$/u;

/** Resolves with the action whose run gives `{"program": base64}`; rejects with a text, the reason is on stderr. */
async function load({ placed, command: [go, version], main = 'main' }) {
  if (placed === undefined) throw 'Missing main/no code to execute.';
  const folder = sourceFolder();
  try {
    prepare(folder, main, version);
  } catch (error) {
    console.error(error.message);
    throw notBuilt;
  }
  const program = path.resolve('program');
  const built = spawnSync(go, ['build', '-ldflags=-s -w', '-o', program, '.'], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (built.error) console.error(built.error.message);
  if (built.status !== 0 || !fs.existsSync(program)) throw notBuilt;
  return { run: () => JSON.stringify({ program: fs.readFileSync(program, 'base64') }) };
}

const goFiles = (folder) => fs.readdirSync(folder).filter((name) => name.endsWith('.go') && !name.endsWith('_test.go'));

/** Where package main lies: the archive's root, or its folder `src`. */
function sourceFolder() {
  if (fs.existsSync('exec')) fs.renameSync('exec', 'exec__.go');
  const root = process.cwd();
  if (goFiles(root).length > 0 || !fs.existsSync('src')) return root;
  if (fs.existsSync('src/exec')) fs.renameSync('src/exec', 'src/exec__.go');
  return path.join(root, 'src');
}

/** Adds the module's file and the launcher unless the sources bring their own. */
function prepare(folder, main, version) {
  const sources = goFiles(folder).map((name) => fs.readFileSync(path.join(folder, name), 'utf8'));
  if (sources.length === 0) throw new Error('There are no Go files.');
  const modules = [folder, path.dirname(folder)].map((each) => path.join(each, 'go.mod'));
  if (!modules.some((file) => fs.existsSync(file))) fs.writeFileSync(modules[0], `module action\n\ngo ${version}\n`);
  if (sources.some((source) => /^func\s+main\s*\(\s*\)/m.test(source))) return;
  if (!identifier.test(main)) throw new Error(`'${main}' is no name of a function.`);
  const capital = main[0].toUpperCase();
  // OpenWhisk's build makes all letters but the first small.
  const names = [capital + main.slice(1), capital + main.slice(1).toLowerCase()];
  const declared = (name) => sources.some((source) => new RegExp(`^(func|var)\\s+${name}\\b`, 'm').test(source));
  const found = names.find(declared) ?? names[0];
  const launcher = fs.readFileSync(path.join(__dirname, 'launcher.go.txt'), 'utf8');
  fs.writeFileSync(
    path.join(folder, 'main__.go'),
    launcher.replace('reflect.ValueOf(Main)', `reflect.ValueOf(${found})`),
  );
}

module.exports = { load };

// Reads the text in a picture with an action on the platform.
// Usage: node run.mjs PICTURE [--update] [--apihost URL] [--auth UUID:KEY]
// The action is created where it is missing, and replaced with --update.
// A picture over 700 kB, or of a type other than PNG and JPEG, is shrunk first: that takes Python 3 with pip, which
// fetches Pillow into ./build once.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const action = 'text-recognition';
const requirements = ['rapidocr==3.10.0', 'onnxruntime>=1.20,<2'];
// A payload has 1 MB, and base64 makes four characters of three bytes.
const mostBytes = 700_000;
const longestWaitMs = 900_000;
const pollMs = 2_000;
const unfinished = 202;
const exists = 153;

const here = fileURLToPath(new URL('.', import.meta.url));
const wsk = fileURLToPath(new URL('../../bin/wsk', import.meta.url));
const build = `${here}build`;

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: { update: { type: 'boolean', default: false }, apihost: { type: 'string' }, auth: { type: 'string' } },
});
const [picture] = positionals;
if (positionals.length !== 1 || !existsSync(picture)) {
  console.error('Usage: node examples/text-recognition/run.mjs PICTURE [--update] [--apihost URL] [--auth UUID:KEY]');
  process.exit(2);
}
const { update, ...server } = given;
const target = Object.entries(server).flatMap(([name, value]) => [`--${name}`, value]);

/** Runs wsk and returns what it printed; ends the program with wsk's own words where it fails otherwise than allowed. */
function runWsk(args, allowed = []) {
  const { status, stdout, stderr, error } = spawnSync(wsk, [...args, ...target], {
    encoding: 'utf8',
    timeout: longestWaitMs,
    maxBuffer: 16 * 1024 * 1024,
  });
  if (status === 0 || allowed.includes(status)) return { status, output: stdout + stderr, stdout };
  console.error(error ? error.message : (stderr + stdout).trim());
  process.exit(1);
}

/** The picture's file, made small enough. */
function fit(file) {
  if (/\.(png|jpe?g)$/i.test(file) && statSync(file).size <= mostBytes) return file;
  const packages = `${build}/packages`;
  if (!existsSync(`${packages}/PIL`)) {
    const options = ['--quiet', '--disable-pip-version-check', '--only-binary=:all:', '--target', packages];
    execFileSync('python3', ['-m', 'pip', 'install', ...options, 'pillow'], {
      env: { ...process.env, PIP_ROOT_USER_ACTION: 'ignore' },
      stdio: 'inherit',
      timeout: 300_000,
    });
  }
  const small = `${build}/small.jpg`;
  execFileSync('python3', [`${here}shrink.py`, file, small, String(mostBytes)], {
    env: { ...process.env, PYTHONPATH: packages },
    stdio: 'inherit',
    timeout: 120_000,
  });
  return small;
}

/** The result of the activation: at once, or when a first run has installed its packages and ended. */
async function invoke(parameters) {
  const { status, output, stdout } = runWsk(
    ['action', 'invoke', action, '--blocking', '--result', '--param-file', parameters],
    [unfinished],
  );
  if (status === 0) return JSON.parse(stdout);
  const [id] = /[0-9a-f]{32}/.exec(output) ?? [];
  console.error(`It takes longer than a minute; waiting for activation ${id}.`);
  for (let waitedMs = 0; waitedMs < longestWaitMs; waitedMs += pollMs) {
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    const answer = spawnSync(wsk, ['activation', 'get', id, ...target], { encoding: 'utf8', timeout: 60_000 });
    if (answer.status === 0) return JSON.parse(answer.stdout.slice(answer.stdout.indexOf('{'))).response.result;
  }
  console.error(`Activation ${id} has no result after ${longestWaitMs / 1000} s.`);
  return process.exit(1);
}

mkdirSync(build, { recursive: true });
const parameters = `${build}/parameters.json`;
writeFileSync(parameters, JSON.stringify({ image: readFileSync(fit(picture)).toString('base64') }));
const limits = ['--kind', 'python:default', '--memory', '2048', '--timeout', '300000'];
const warm = { imports: ['numpy', 'PIL.Image', 'rapidocr'], entry: 'load' };
const annotation = Object.entries({ requirements, warm }).flatMap(([key, value]) => [
  '--annotation',
  key,
  JSON.stringify(value),
]);
runWsk(['action', update ? 'update' : 'create', action, `${here}recognise.py`, ...limits, ...annotation], [exists]);
const result = await invoke(parameters);
if (result.error !== undefined) {
  console.error(`The action failed: ${JSON.stringify(result.error)}`);
  process.exit(1);
}
console.log(result.text === '' ? 'No text was found.' : result.text);

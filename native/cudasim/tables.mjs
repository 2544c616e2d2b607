// Writes the tables that model.json is in C: of the devices for the daemon, of the workloads for functions. They are kept
// beside the sources, so that a function needs nothing but its headers. With --check: ends with 1 where one is out of date.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const read = (file) => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
const model = read('model.json');
const fitted = read('contention/fitted.json');
const note = '// Made by native/cudasim/tables.mjs from model.json and contention/fitted.json: edit those.';

/** A number of C with a point, as the tables are of `double`s. */
const real = (value) => (Number.isInteger(value) ? `${value}.0` : String(value));

function profileRow(profile) {
  const { name, id, slots, computeSlices, sms, memoryGiB, starts, maximum, mediaExtensions } = profile;
  const fields = [`"${name}"`, id, slots, computeSlices, sms, memoryGiB, `{${starts.join(', ')}}`, maximum];
  return `{${[...fields, ...(mediaExtensions ? ['true'] : [])].join(', ')}}`;
}

function deviceRow(device) {
  const { type, name, profiles, ...rest } = device;
  return `{"${type}", "${name}", ${Object.values(rest).join(', ')},\n {${profiles.map(profileRow).join(',\n  ')}}},`;
}

function devices() {
  const { turnMs, launchUs } = model.assumed;
  const { sharpness, bound, demand, sensitivity, pressure } = fitted.form;
  const lines = [demand, sensitivity, pressure].map(({ intercept, byLogFill }) => `{${intercept}, ${byLogFill}}`);
  return [
    note,
    `#define GPUWHISK_CONTENTION ${[sharpness, bound, ...lines].join(', ')}`,
    `#define GPUWHISK_TURN_MS ${turnMs}`,
    `#define GPUWHISK_LAUNCH_US ${launchUs}`,
    '#define GPUWHISK_DEVICES \\',
    model.devices.map(deviceRow).join('\n').replaceAll('\n', ' \\\n'),
    '',
  ].join('\n');
}

const wrap = (text) => text.replace(/(.{1,116})(\s+|$)/g, '//   $1\n').trimEnd();

function workloads() {
  const rows = model.workloads.map((workload) => {
    const { name, fixedMs, itemMs, weightsMiB, itemMiB, dram } = workload;
    const fullBatch = fitted.fullBatch.find((one) => one.workload === name)?.value ?? workload.fullBatch;
    const { sensitivity = 1, pressure = 1 } = fitted.training.find((one) => one.workload === name) ?? {};
    const figures = [fixedMs, itemMs, weightsMiB, itemMiB, fullBatch, dram, sensitivity, pressure];
    return `GPUWHISK_MODEL(${[name, ...figures.map(real)].join(', ')})`;
  });
  const papers = [...new Set(model.workloads.map(({ paper }) => paper))];
  const ofPaper = (paper) => rows.filter((_, i) => model.workloads[i].paper === paper).join('\n');
  const timesOf = (key) => model.workloads.filter(({ from }) => from.time === key).map(({ name }) => name);
  const times = Object.entries(model.sources)
    .filter(([key]) => timesOf(key).length > 0)
    .map(([key, text]) => `${wrap(`${timesOf(key).join(', ')}: ${text}.`)}`);
  return [
    note,
    '//',
    '// Workloads of the papers, as the stand-in for a GPU runs them: a table for C (define GPUWHISK_MODEL) and for Python,',
    '// which reads these lines as text.',
    '//',
    '// GPUWHISK_MODEL(name, fixedMs, itemMs, weightsMiB, itemMiB, fullBatch, dram, sensitivity, pressure)',
    '// A batch of b takes fixedMs + b * itemMs alone on a whole A100. It fills b / fullBatch of the SMs, and at that uses as',
    "// much of the part `dram` of the memory's bandwidth. Weights: four bytes a parameter, two for the large language models.",
    '// Sensitivity and pressure are factors on those of its fill, in training steps.',
    '// itemMiB and dram are assumed, not measured, and so are the fullBatch and factors of 1 that fitted.json does not have.',
    `// fullBatch of ${fitted.fullBatch.map(({ workload }) => workload).join(', ')}:`,
    '// fitted to ParvaGPU. Factors other than 1: fitted to Gavel. Times are from:',
    ...times,
    ...papers.map((paper) => `\n// ${paper}\n${ofPaper(paper)}`),
    '',
  ].join('\n');
}

const tables = [
  { file: new URL('daemon/devices.h', import.meta.url), text: devices() },
  { file: new URL('../../runtimes/cuda/gpuwhisk_models.h', import.meta.url), text: workloads() },
];

const isStale = ({ file, text }) => readFileSync(file, 'utf8') !== text;

if (process.argv.includes('--check')) {
  const stale = tables.filter(isStale);
  for (const { file } of stale) console.error(`${fileURLToPath(file)} is out of date: run native/cudasim/tables.mjs.`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  for (const { file, text } of tables) writeFileSync(file, text);
}

// node save.js FOLDER: keeps the results of a run of the kit on a GPU in bench/results, and writes its figures into the documents.
import { copyFile, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeBenchFigures } from './figures.js';
import { benchDir } from '../machine.js';
import type { KitReport } from '../gpu-day/report.js';

const [folder = ''] = process.argv.slice(2);
const report = JSON.parse(await readFile(join(folder, 'gpu-day.json'), 'utf8')) as KitReport;
if (report.simulated) {
  console.error('These results are of the stand-in driver: they are not kept.');
  process.exit(1);
}
const device = report.device
  .toLowerCase()
  .replace(/[^a-z0-9]+/g, '-')
  .replace(/-$/, '');
const results = join(benchDir, 'results');
await writeFile(join(results, `gpu-day-${device}.json`), `${JSON.stringify(report, null, 1)}\n`);
for (const file of (await readdir(folder)).filter((name) => name.endsWith('-samples.jsonl'))) {
  await copyFile(join(folder, file), join(results, file));
}
await writeBenchFigures();
console.log(`Kept as bench/results/gpu-day-${device}.json.`);

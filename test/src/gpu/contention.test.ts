import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from '@jest/globals';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { standIn } from './stand-in.js';

const onThisMachine = existsSync(standIn.daemon) ? describe : describe.skip;
const folder = fileURLToPath(new URL('../../../native/cudasim', import.meta.url));

interface Case {
  name: string;
  device: string;
  clients: { workload: string; batch: number; percent: number; isTraining?: boolean }[];
  slowdown: number[];
}
const { cases } = JSON.parse(readFileSync(join(folder, 'contention/cases.json'), 'utf8')) as { cases: Case[] };

const ask = (line: string): string =>
  spawnSync(join(standIn.folder, 'contention'), {
    input: `${line}\n`,
    encoding: 'utf8',
    timeout: 20_000,
  }).stdout.trim();

onThisMachine("the stand-in's model of contention", () => {
  test.each(cases)('$name', ({ device, clients, slowdown }) => {
    const words = clients.map(
      ({ workload, batch, percent, isTraining }) =>
        `${workload}:${batch}:${percent}${isTraining === true ? ':train' : ''}`,
    );
    const found = ask([device, ...words].join(' '))
      .split(' ')
      .map(Number);
    expect(found).toHaveLength(slowdown.length);
    found.forEach((value, i) => expect(value / (slowdown[i] as number)).toBeCloseTo(1, 3));
  });

  test.each(['a100-40 none:1:100', 'none resnet50:1:100', 'a100-40 resnet50:0:100', 'a100-40 resnet50:1:101'])(
    'does not know %s',
    (line) => expect(ask(line)).toBe('unknown'),
  );
});

test('the tables in C are those of model.json and fitted.json', async () => {
  await runProgram(process.execPath, [join(folder, 'tables.mjs'), '--check'], { timeoutMs: 20_000 });
});

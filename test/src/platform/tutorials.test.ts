// Tutorials and examples, each in a terminal of its own: their commands run, and print what the pages say.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasPython } from '../support/machine.js';
import { missing, startCluster } from '../distributed/running-cluster.js';
import type { Cluster } from '../distributed/running-cluster.js';
import { blocksOf, isAsTold, openTerminal, runBlock } from '../support/document-commands.js';
import type { CommandBlock } from '../support/document-commands.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const documentMs = 120_000;

/** Pages whose commands are not run here, as docs/README.md tells its readers. */
const notRun = new Set(
  [
    ...readFileSync(join(repository, 'docs/README.md'), 'utf8').matchAll(/^\| \[.*?\]\((\S+)\) \| not run: (.*) \|$/gm),
  ].map(([, path]) => join('docs', path!)),
);
const pages = [
  ...readdirSync(join(repository, 'docs/tutorials')).map((name) => `docs/tutorials/${name}`),
  ...readdirSync(join(repository, 'examples')).map((name) => `examples/${name}/README.md`),
];

/** Platforms by the flags that they were started with, and the addresses that pages give them. */
const platforms = new Map<string, Promise<RunningPlatform>>();
let cluster: Promise<Cluster> | undefined;
afterAll(async () => {
  await (await cluster)?.stop();
  for (const platform of platforms.values()) await (await platform).stop();
}, documentMs);

/** The platform of a line `npm start`: a further one if the flags of one that runs are others. */
function platformOf(flags: string): Promise<RunningPlatform> {
  const own = flags.replace(/--(port|data) \S+/g, '').trim();
  const key = `${own} ${/--port (\d+)/.exec(flags)?.[1] ?? ''}`;
  const known = platforms.get(key) ?? startPlatform({ flags: own === '' ? [] : own.split(/\s+/) });
  platforms.set(key, known);
  return known;
}

const gpus = '--gpus sim:a100-40';

/** Text of a page with the addresses of the platforms that run in place of those that it names. */
type Moved = (text: string) => string;

/** Does what a line in a reader's other terminal does; undefined if the line is for this one. */
async function startedBy({ commands, output }: CommandBlock): Promise<Moved | undefined> {
  const [, isCluster, flags = ''] = /^npm (?:start|(run cluster))(?: -- (.*))?\n$/.exec(commands) ?? [];
  if (isCluster !== undefined) {
    const { url, auth } = await (cluster ??= startCluster(numberOf('controllers', flags), numberOf('invokers', flags)));
    return (text) => text.replace(/=URL$/gm, `=${url}`).replace(/=KEY$/gm, `=${auth}`);
  }
  if (!commands.startsWith('npm start')) return undefined;
  const address = `http://127.0.0.1:${/--port (\d+)/.exec(flags)?.[1] ?? '3233'}`;
  const platform = await platformOf(flags);
  if (output !== undefined) expect(platform.output().replaceAll(platform.url, address)).toContain(output);
  return (text) => text.replaceAll(address, platform.url);
}

const numberOf = (flag: string, flags: string): number => Number(new RegExp(`--${flag} (\\d+)`).exec(flags)?.[1]);

async function runPage(path: string): Promise<void> {
  const blocks = blocksOf(readFileSync(join(repository, path), 'utf8'));
  expect(blocks).not.toEqual([]);
  const terminal = openTerminal(repository);
  const moves: Moved[] = [];
  try {
    if (path.startsWith('examples/')) {
      // Examples are for a platform that runs already.
      const { url, auth } = await platformOf(path.includes('/gpu/') ? gpus : '');
      await terminal.run(`export WHISK_APIHOST=${url} WHISK_AUTH=${auth}\n`);
    }
    for (const block of blocks) {
      const started = await startedBy(block);
      if (started !== undefined) {
        moves.push(started);
        continue;
      }
      const moved: Moved = (text) => moves.reduce((told, move) => move(told), text);
      const { commands, output } = block;
      await runBlock(terminal, { commands: moved(commands), ...(output !== undefined && { output: moved(output) }) });
    }
  } finally {
    terminal.close();
  }
}

test('outputs are compared but for ids, times and what is left out', () => {
  const told = 'ok: invoked hello with id 0123456789abcdef0123456789abcdef\n{\n…\n    "done": true\n}\n';
  const printed = (done: boolean): string =>
    `ok: invoked hello with id ${'a'.repeat(32)}\n{\n    "a": 1,\n    "done": ${done}\n}\n`;
  expect(isAsTold(printed(true), told)).toBe(true);
  expect(isAsTold(printed(false), told)).toBe(false);
  expect(isAsTold('done in 12 ms\nmore\n', 'done in 7 ms\n')).toBe(false);
  expect(isAsTold('device 0: a b c\n', 'device 0: … c\n')).toBe(true);
});

test('only pages that exist and have commands are left out', () => {
  expect(notRun.size).toBeGreaterThan(0);
  for (const path of notRun) {
    expect(pages).toContain(path);
    expect(blocksOf(readFileSync(join(repository, path), 'utf8'))).not.toEqual([]);
  }
});

const canRun = (path: string): boolean =>
  hasPython && hasStandIn() && (!path.endsWith('cluster.md') || missing.length === 0);
for (const path of pages.filter((page) => !notRun.has(page)))
  (canRun(path) ? test : test.skip)(path, () => runPage(path), documentMs);

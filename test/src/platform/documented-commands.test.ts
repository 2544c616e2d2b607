// Commands in pages of docs that are no tutorials, as far as they can run as they stand, after what their readers have done.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { openTerminal, runBlock } from '../support/document-commands.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const caseMs = 120_000;

/** The blocks of each page that are run, by the beginning of their first line, and what their readers have done before. */
const pages: Readonly<Record<string, { before: string; blocks: readonly string[] }>> = {
  'docs/api-gateway.md': {
    before: `cat > books.js <<'END'
function main({ __ow_path, isbn }) { return { body: [__ow_path, isbn] }; }
END
AUTH=$WHISK_AUTH APIHOST=$WHISK_APIHOST\n`,
    blocks: ['wsk action create books', 'curl -u $AUTH -X POST'],
  },
  'docs/baselines-operation.md': {
    before: `wsk action create gpu examples/hello/hello.js -a gpu '{"memoryMiB":1024}'
wsk action invoke gpu --result\n`,
    blocks: ['./bin/wsk gpu policy try'],
  },
  'docs/console.md': {
    before: `wsk action create hello examples/hello/hello.js
for version in 2 3 4; do wsk action update hello examples/hello/hello.js; done\n`,
    blocks: ['gpuwhisk action versions', 'curl -N'],
  },
  'docs/wsk.md': {
    before: `wsk action create logged examples/hello/hello.js
ID=$(wsk action invoke logged | grep -o '[0-9a-f]\\{32\\}')\n`,
    blocks: ['curl -N'],
  },
};

function blockOf(path: string, beginning: string): string {
  const text = readFileSync(join(repository, path), 'utf8');
  const found = [...text.matchAll(/^```\w*\n([^]*?)^```$/gm)].map(([, block]) => block!);
  return found.find((block) => block.startsWith(beginning)) ?? `There is no block ${beginning}`;
}

/** What a reader ends by Ctrl-C ends by itself here. */
const bounded = (line: string): string =>
  line.replace(/^curl -N (.*)$/m, '{ curl -sSfN --max-time 3 $1 || [ $? = 28 ]; }').replace(/^curl /gm, 'curl -sSf ');

let platform: RunningPlatform;
let gateway: string;
beforeAll(async () => {
  platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40', '--gateway-port', '0'] });
  gateway = /are at (http:\S+)\/api\//.exec(platform.output())?.[1] ?? '';
  expect(gateway).not.toBe('');
}, caseMs);
afterAll(() => platform.stop(), caseMs);

(hasStandIn() ? test.each : test.skip.each)(Object.keys(pages))(
  '%s',
  async (path) => {
    const { before, blocks } = pages[path]!;
    const terminal = openTerminal(repository);
    try {
      await runBlock(terminal, {
        commands: `export WHISK_APIHOST=${platform.url} WHISK_AUTH=${platform.auth} GPUWHISK_DATA_DIR=${platform.dataDir}
alias wsk="$PWD/bin/wsk" gpuwhisk="$PWD/bin/gpuwhisk"\n`,
      });
      await runBlock(terminal, { commands: before });
      for (const beginning of blocks) {
        const commands = bounded(blockOf(path, beginning))
          .replaceAll('http://127.0.0.1:3233', platform.url)
          .replaceAll('http://127.0.0.1:3234', gateway);
        await runBlock(terminal, { commands });
      }
    } finally {
      terminal.close();
    }
  },
  caseMs,
);

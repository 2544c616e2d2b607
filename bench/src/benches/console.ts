import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { sites } from '@gpuwhisk/server/node/sites';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';
import { medianOf } from '../bench.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import type { ConsoleCluster, ConsoleServer } from '../console/console-server.js';
import { benchDir } from '../machine.js';
import { readTree } from '../processes.js';

const module = join(benchDir, 'dist/console/console-server.js');
const cluster: ConsoleCluster = { nodes: 125, devicesPerNode: 8, instancesPerDevice: 2, activationsPerSecond: 500 };
/** Rest after pages were opened or closed, ms. */
const settleMs = 5000;
const shownWithinMs = 30_000;
/** Pages that are open while the controller is measured. */
const pages = 5;
const rounds = 3;

/** The console with 1,000 devices whose use changes each second. */
export const consoleBench: Bench = {
  summary: 'first paint, processor time and size of the console with 1,000 devices',
  parts: ['bundle', 'paint', 'cpu'],
  simulated: true,
  async run(context) {
    const { options, cleanup } = context;
    const wants = (part: string): boolean => options.parts.length === 0 || options.parts.includes(part);
    const measurements: Measurement[] = [];
    if (wants('bundle')) measurements.push({ name: 'bundleKB', value: await packedKB() });
    if (!wants('paint') && !wants('cpu')) return measurements;
    const { pid, server } = await startServer(context);
    const browser = await chromium.launch({ executablePath: browserPath(), args: ['--no-sandbox'] });
    cleanup.add('browser', () => browser.close());
    await sleep(settleMs);
    if (wants('paint')) measurements.push(...(await measurePaint(context, browser, server)));
    if (wants('cpu')) measurements.push(...(await measureCpu(context, browser, { pid, server })));
    return measurements;
  },
};

function browserPath(): string {
  const path = spawnSync('sh', ['-c', 'command -v chromium']).stdout.toString().trim();
  if (path === '') throw new Error('There is no chromium: apt-get install chromium');
  return path;
}

/** Size of all files of the console as they are sent, kB. */
async function packedKB(): Promise<number> {
  const files = await sites.find(({ root }) => root === '/console')?.list();
  let bytes = 0;
  for (const read of files?.values() ?? []) bytes += gzipSync(await read()).length;
  return bytes / 1000;
}

/** Starts the controller in a process of its own. */
async function startServer({ cleanup }: BenchContext): Promise<{ pid: number; server: ConsoleServer }> {
  const child = spawn(process.execPath, [module, JSON.stringify(cluster)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { pid } = child;
  if (pid === undefined) throw new Error('the controller cannot be started');
  const ended = once(child, 'exit');
  cleanup.add('controller', async () => {
    child.stdin.end();
    await ended;
  });
  child.stdout.setEncoding('utf8');
  let text = '';
  for await (const part of child.stdout.iterator({ destroyOnReturn: false })) {
    text += String(part);
    if (text.includes('\n')) return { pid, server: JSON.parse(text) as ConsoleServer };
  }
  throw new Error('the controller ended before it listened');
}

/** Opens the page, and signs in. Resolves with the times until the sign-in and until the list of GPUs was drawn, ms. */
async function openPage(browser: Browser, { url, key }: ConsoleServer): Promise<{ page: Page; paintedMs: number }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(shownWithinMs);
  await page.goto(`${url}/console`);
  const field = page.getByLabel('Key');
  await field.fill(key);
  const loadedMs = await page.evaluate<number>(
    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()",
  );
  // From the click to the frame after the rows are in the page.
  const shownMs = await page.evaluate<number>(`new Promise((resolve) => {
    const beganMs = performance.now();
    const look = () => {
      if (document.querySelector('.rows .row') === null) requestAnimationFrame(look);
      else requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - beganMs)));
    };
    document.querySelector('form button').click();
    look();
  })`);
  return { page, paintedMs: loadedMs + shownMs };
}

async function measurePaint({ say }: BenchContext, browser: Browser, server: ConsoleServer): Promise<Measurement[]> {
  const paints: number[] = [];
  for (let sample = 0; sample < 2 * rounds + 1; sample += 1) {
    const { page, paintedMs } = await openPage(browser, server);
    paints.push(paintedMs);
    await page.context().close();
  }
  say(`  painted after ${paints.map((ms) => ms.toFixed(0)).join(', ')} ms`);
  return [medianOf('firstPaintMs', paints)];
}

/** Processor time of a process and its descendants until now, s. */
function spentS(pid: number): number {
  const { root, descendants } = readTree(pid);
  return [root, ...descendants].reduce((sum, one) => sum + one.cpuS + one.endedChildrenCpuS, 0);
}

/** Mean processor use of a process tree, in cores. */
async function coresOf(pid: number, seconds: number): Promise<number> {
  const beganMs = performance.now();
  const beforeS = spentS(pid);
  await sleep(seconds * 1000);
  return (spentS(pid) - beforeS) / ((performance.now() - beganMs) / 1000);
}

/** Of the browser with one page beyond none, and of the controller with five beyond none. */
async function measureCpu(
  { say, options }: BenchContext,
  browser: Browser,
  { pid, server }: { pid: number; server: ConsoleServer },
): Promise<Measurement[]> {
  const browserPid = await pidOf(browser);
  const seconds = 2 * options.seconds;
  const browserCores: number[] = [];
  const controllerCores: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await sleep(settleMs);
    const [idle, alone] = await Promise.all([coresOf(browserPid, seconds), coresOf(pid, seconds)]);
    const first = await openPage(browser, server);
    await sleep(settleMs);
    const one = await coresOf(browserPid, seconds);
    const others: Page[] = [];
    for (let count = 1; count < pages; count += 1) others.push((await openPage(browser, server)).page);
    await sleep(settleMs);
    const five = await coresOf(pid, seconds);
    say(
      `  browser ${(one - idle).toFixed(3)} cores with a page; controller ${alone.toFixed(3)}, with ${pages} pages ${five.toFixed(3)}`,
    );
    browserCores.push(one - idle);
    controllerCores.push(five - alone);
    for (const page of [first.page, ...others]) await page.context().close();
  }
  return [medianOf('browserCpu', browserCores), medianOf('controllerCpu', controllerCores)];
}

/** The process of a browser. */
async function pidOf(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const own = processInfo.find(({ type }) => type === 'browser');
  if (own === undefined) throw new Error('the browser names no process');
  return own.id;
}

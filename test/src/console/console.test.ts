// The console in a real browser, on a live platform with simulated GPUs.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { violationsOf } from '../support/accessibility.js';
import { complaintsOf } from '../support/browser-complaints.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const soonMs = 30_000;
const browserPath = spawnSync('sh', ['-c', 'command -v chromium']).stdout.toString().trim();
/** Where pictures of the pages are kept. */
const pictures = new URL('../../../build/pictures/', import.meta.url).pathname;
const flags = ['--gpus', 'sim:a100-40x2', '--set', 'gpu.policy=least-loaded'];
const gpu = { memoryMiB: 2048, mpsPercent: 50 };
const slow = 'function main({ ms = 0 }) { return new Promise((end) => setTimeout(() => end({}), ms)); }';

(browserPath === '' ? describe.skip : describe)('the console', () => {
  let platform: RunningPlatform;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  /** What the browser complained of, or asked of other hosts. */
  let complaints: string[];

  beforeAll(async () => {
    platform = await startPlatform({ flags });
    browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    for (const name of ['one', 'two', 'three']) await platform.api.putAction(name, slow, { annotations: { gpu } });
    mkdirSync(pictures, { recursive: true });
  }, caseMs);
  afterAll(async () => {
    await browser.close();
    await platform.stop();
  }, caseMs);
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    complaints = complaintsOf(page, platform.consoleUrl);
    await page.goto(`${platform.consoleUrl}/console`);
  }, caseMs);
  afterEach(async () => {
    await context.close();
  });

  async function signIn(key: string): Promise<void> {
    await page.getByLabel('Key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }
  /** Keeps a picture of the page, and expects no violation of accessibility in light and in dark. */
  async function look(name: string): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${pictures}${name}-${colorScheme}.png` });
      const violations = await violationsOf(page, colorScheme);
      expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
    }
  }

  test(
    'a wrong key is refused in words, and a right one shows the overview',
    async () => {
      await look('sign-in');
      await signIn(`${platform.auth.slice(0, -1)}?`);
      await page.getByRole('alert').filter({ hasText: 'authentication' }).waitFor();
      await signIn(platform.auth);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      // The browser notes the refusal.
      expect(complaints.map((one) => /40[13]/.exec(one)?.[0] ?? one)).toEqual(['401']);
    },
    caseMs,
  );

  test(
    'functions appear on their GPUs as they run, and what waits says why',
    async () => {
      await signIn(platform.auth);
      const rows = page.getByRole('table', { name: 'GPUs' }).getByRole('row');
      await until('both GPUs are listed', async () => (await rows.count()) === 3, soonMs);
      const runs = ['one', 'two', 'three'].map((name) => platform.api.run(name, { ms: 12_000 }));
      const busy = page.locator('.share.running');
      await until('instances are drawn', async () => (await busy.count()) >= 2, soonMs);
      expect(await busy.first().getAttribute('title')).toMatch(
        /^\/guest\/(one|two|three): 50 % of the SMs, 2.0 GiB, 1 running$/,
      );
      await look('overview');
      await page.getByRole('link', { name: 'invoker0 / 0' }).click();
      await page
        .getByRole('cell', { name: /^\/guest\/(one|two|three)$/ })
        .first()
        .waitFor();
      await look('device');
      await page.getByRole('link', { name: 'Queue' }).click();
      await page.getByRole('heading', { name: 'Queue' }).waitFor();
      await look('queue');
      await Promise.all(runs);
      expect(complaints).toEqual([]);
    },
    caseMs,
  );

  test(
    'a controller that starts again is told, and the page goes on by itself',
    async () => {
      await signIn(platform.auth);
      const status = page.getByRole('status');
      await status.filter({ hasText: /^live$/ }).waitFor();
      await platform.end('SIGTERM');
      await status.filter({ hasText: 'connection lost' }).waitFor({ timeout: soonMs });
      platform = await startPlatform({
        dataDir: platform.dataDir,
        flags: [...flags, '--console-port', new URL(platform.consoleUrl).port],
      });
      await status.filter({ hasText: /^live$/ }).waitFor({ timeout: soonMs });
      await page.getByRole('table', { name: 'GPUs' }).waitFor();
    },
    caseMs,
  );

  test('on a phone nothing is wider than the screen', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await signIn(platform.auth);
    await page.getByRole('table', { name: 'GPUs' }).waitFor();
    await look('overview-phone');
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  });
});

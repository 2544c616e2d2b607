// The documentation in a real browser, as a platform serves it.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { violationsOf } from '../support/accessibility.js';
import { complaintsOf } from '../support/browser-complaints.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const browserPath = spawnSync('sh', ['-c', 'command -v chromium']).stdout.toString().trim();
const isBuilt = existsSync(fileURLToPath(new URL('../../../build/docs/index.html', import.meta.url)));
const pictures = new URL('../../../build/pictures/', import.meta.url).pathname;

(browserPath !== '' && isBuilt ? describe : describe.skip)('the documentation', () => {
  let platform: RunningPlatform;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  /** What the browser complained of, or asked of other hosts. */
  let complaints: string[];

  beforeAll(async () => {
    // No function runs here, and sandboxes' interfaces would disturb the browser.
    platform = await startPlatform({ flags: ['--stem-cells', 'false'] });
    browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
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
  });
  afterEach(() => context.close());

  /** Keeps a picture of the page, and expects no serious violation of the other rules of accessibility, in light and in dark. */
  async function look(name: string, without: string[] = []): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.waitForTimeout(300);
      await page.screenshot({ path: `${pictures}${name}-${colorScheme}.png` });
      const violations = await violationsOf(page, colorScheme, without);
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      expect(serious.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(({ html }) => html)])).toEqual([]);
    }
  }

  test(
    'a page is opened from the map, found by its words and shown without a request to another host',
    async () => {
      await page.goto(`${platform.consoleUrl}/docs`);
      await page.getByRole('heading', { name: 'Documentation', level: 1 }).waitFor();
      await look('docs');
      await page.getByRole('main').getByRole('link', { name: 'Five-minute start' }).click();
      await page.getByRole('heading', { name: 'Five-minute start', level: 1 }).waitFor();
      expect(page.url()).toBe(`${platform.consoleUrl}/docs/tutorials/start`);
      await look('docs-page');
      await page.getByRole('button', { name: 'Search' }).first().click();
      await page.getByRole('searchbox').fill('quota rows');
      await page.getByRole('option').first().waitFor();
      // VitePress's results are options with a link inside; keys choose them all the same.
      await look('docs-search', ['nested-interactive']);
      await page.getByRole('searchbox').fill('kernel tokens');
      // The list may still change while it is looked at: the entry is named by where it leads.
      await page.locator('[role=option] a[href*="/gpu"][href$="#kernel-tokens"]').click();
      await page.getByRole('heading', { name: 'Kernel tokens' }).waitFor();
      expect(page.url()).toContain('/docs/gpu#');
      expect(complaints).toEqual([]);
    },
    caseMs,
  );

  test(
    'reference, measurements and a page that is not there',
    async () => {
      await page.goto(`${platform.consoleUrl}/docs/reference/settings`);
      await page.getByRole('cell', { name: 'gpu.search.idleMs' }).waitFor();
      await page.goto(`${platform.consoleUrl}/docs/reference/api`);
      await page.getByRole('heading', { name: 'PUT /namespaces/{namespace}/actions/{actionName}' }).waitFor();
      await page.goto(`${platform.consoleUrl}/docs/smore-measurements`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect(complaints).toEqual([]);
      const missing = await page.goto(`${platform.consoleUrl}/docs/nothing`);
      expect(missing?.status()).toBe(404);
      await page.getByText('404').waitFor();
      // The browser notes the status of a page.
      expect(complaints.filter((one) => !one.includes('404'))).toEqual([]);
    },
    caseMs,
  );

  test(
    'on a phone nothing is wider than the screen',
    async () => {
      await page.setViewportSize({ width: 360, height: 740 });
      await page.goto(`${platform.consoleUrl}/docs/tutorials/start`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await look('docs-phone');
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
      expect(complaints).toEqual([]);
    },
    caseMs,
  );
});

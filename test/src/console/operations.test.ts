// The console's pages for operators, in a real browser on a live platform with simulated GPUs and traffic.
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
const flags = ['--gpus', 'sim:a100-40x2', '--set', 'gpu.policy=faashare'];
const slow = 'function main({ ms = 0 }) { return new Promise((end) => setTimeout(() => end({}), ms)); }';

(browserPath === '' ? describe.skip : describe)("the console's pages for operators", () => {
  let platform: RunningPlatform;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  /** What the browser complained of. */
  let complaints: string[];
  /** Traffic on the platform, until it is to stop. */
  let traffic: Promise<void>;
  let isOver = false;

  beforeAll(async () => {
    platform = await startPlatform({ flags });
    browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    mkdirSync(pictures, { recursive: true });
    const gpus = {
      easy: { memoryMiB: 2048, mpsPercent: 30, sloMs: 60_000 },
      strict: { memoryMiB: 4096, mpsPercent: 50, sloMs: 1 },
    };
    for (const [name, gpu] of Object.entries(gpus)) await platform.api.putAction(name, slow, { annotations: { gpu } });
    await platform.api.putAction('plain', slow);
    const runs = async (name: string): Promise<void> => {
      while (!isOver) await platform.api.run(name, { ms: 150 });
    };
    traffic = Promise.all(['easy', 'strict', 'plain'].map(runs)).then(() => undefined);
  }, caseMs);
  afterAll(async () => {
    isOver = true;
    await traffic;
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
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  }
  async function open(name: string, heading = name): Promise<void> {
    await page.getByRole('navigation').getByRole('link', { name }).click();
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
  }
  /** Keeps pictures of the page, and expects no violation of accessibility in light and in dark, and nothing too wide. */
  async function look(name: string): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${pictures}${name}-${colorScheme}.png`, fullPage: true });
      const violations = await violationsOf(page, colorScheme);
      expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    await page.screenshot({ path: `${pictures}${name}-phone.png`, fullPage: true });
    expect([name, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([name, 360]);
    await page.setViewportSize({ width: 1280, height: 720 });
  }

  test(
    'the overview draws what ran, how it started, and which part met its SLO',
    async () => {
      await signIn(platform.operatorAuth);
      const chart = (title: string) => page.getByRole('img', { name: title });
      await chart('Starts by kind').waitFor({ timeout: soonMs });
      await until(
        'the chart has a share of the GPU activations that meet their SLO',
        async () => /met their SLO: \d+\.?\d* % at last/.test(String(await chart('SLO').getAttribute('aria-label'))),
        soonMs,
      );
      const told = await chart('Starts by kind').getAttribute('aria-label');
      expect(told).toMatch(/warm: [\d.]+\/s at last.*cold: [\d.]+\/s at last/);
      const figure = (name: string) => page.locator('.figures div', { hasText: name }).locator('dd');
      expect(Number.parseFloat(await figure('Activations a second').innerText())).toBeGreaterThan(0);
      // One of the two functions with an SLO always meets it, and the other one never.
      const attained = async (): Promise<number> => Number.parseFloat(await figure('SLO attainment').innerText());
      await until('some meet their SLO', async () => (await attained()) > 0 && (await attained()) < 100, soonMs);
      expect(await figure('SLO attainment').innerText()).toMatch(/^\d+\.\d % of \d+ with an SLO in 5 min$/);
      await page.getByText('As a table: Activations').click();
      const values = page.getByRole('region', { name: 'Activations, values' }).getByRole('row');
      await until('the values are listed', async () => (await values.count()) > 2, soonMs);
      await look('overview-charts');
      expect(complaints).toEqual([]);
    },
    caseMs,
  );

  test(
    'a device shows its last minutes, and predicted beside actual times',
    async () => {
      await signIn(platform.auth);
      await page.getByRole('link', { name: 'invoker0 / 0' }).click();
      const spans = page.getByRole('list', { name: 'Instances and workloads' }).getByRole('listitem');
      await until('instances are drawn over time', async () => (await spans.count()) >= 1, soonMs);
      expect(await spans.first().innerText()).toMatch(/^\/guest\/(easy|strict) (30|50) %, [24]\.0 GiB/);
      const predicted = page.getByRole('row').filter({ has: page.getByRole('cell', { name: /^\/guest\/\w+$/ }) });
      const rows = predicted.filter({ has: page.getByRole('cell', { name: /^-?\d+ %$/ }) });
      await until('runs were predicted', async () => (await rows.count()) >= 1, soonMs);
      await page.getByRole('img', { name: 'Memory' }).waitFor();
      await look('device-history');
      expect(complaints).toEqual([]);
    },
    caseMs,
  );

  test(
    'the policy tells its stages and settings, and another one is tried on recorded arrivals',
    async () => {
      await signIn(platform.operatorAuth);
      await open('Policy');
      await page.getByRole('heading', { name: 'plan: sub-queues' }).waitFor();
      expect(await page.getByText('shares of one GPU that are given away, at most').count()).toBe(1);
      await page.getByRole('combobox', { name: 'Policy', exact: true }).selectOption('least-loaded');
      await page.getByText('Other stages and settings').click();
      await page.getByRole('combobox', { name: 'scale', exact: true }).selectOption('reactive');
      await page.getByRole('textbox', { name: 'Settings' }).fill('idleS');
      await page.getByRole('button', { name: 'Try' }).click();
      await page.getByRole('alert').filter({ hasText: "'idleS' is no setting: name=number is expected." }).waitFor();
      await page.getByRole('textbox', { name: 'Settings' }).fill('idleS=30');
      await page.getByRole('button', { name: 'Try' }).click();
      const results = page.getByRole('region', { name: 'Comparison' }).getByRole('row');
      await until('both policies are compared', async () => (await results.count()) === 3, soonMs);
      expect(await results.nth(1).innerText()).toContain('faashare (in force)');
      expect(await results.nth(2).innerText()).toContain('least-loaded scale=reactive idleS=30');
      await look('policies');
      expect(complaints).toEqual([]);
    },
    caseMs,
  );

  test(
    'costs are told by function, and saved as a file',
    async () => {
      await signIn(platform.auth);
      await open('Cost');
      await page.getByRole('cell', { name: '/guest/easy' }).waitFor({ timeout: soonMs });
      const saving = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Save as CSV' }).click();
      expect((await saving).suggestedFilename()).toBe('gpu-cost.csv');
      await look('cost');
      expect(complaints).toEqual([]);
    },
    caseMs,
  );

  test(
    'a GPU is cordoned once that was confirmed, and taken into use again',
    async () => {
      await signIn(platform.operatorAuth);
      await open('Cluster');
      await page.getByRole('region', { name: 'Controllers and invokers' }).getByText('controller0').waitFor();
      await page.getByRole('region', { name: 'Nodes with GPUs' }).getByText('invoker0').first().waitFor();
      const row = page.getByRole('table', { name: 'GPUs of the cluster' }).getByRole('row', { name: 'invoker0 / 1' });
      await row.getByRole('button', { name: 'Cordon invoker0 / 1' }).click();
      const dialog = page.getByRole('dialog', { name: 'Cordon invoker0 / 1' });
      await dialog.waitFor();
      await look('cluster-confirm');
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      expect(await row.getByText('healthy').count()).toBe(1);
      await row.getByRole('button', { name: 'Cordon invoker0 / 1' }).click();
      await dialog.getByRole('button', { name: 'Cordon' }).click();
      await row.getByText('cordoned', { exact: true }).waitFor({ timeout: soonMs });
      await look('cluster');
      await row.getByRole('button', { name: 'Uncordon' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Uncordon' }).click();
      await row.getByText('healthy').waitFor({ timeout: soonMs });
      expect(complaints).toEqual([]);
    },
    caseMs,
  );

  test(
    "a namespace's key is told what operators may do, and asks for nothing of it",
    async () => {
      await signIn(platform.auth);
      complaints.splice(0);
      await open('Cluster');
      await page.getByText("with an operator's key only").waitFor();
      await page.getByRole('table', { name: 'GPUs of the cluster' }).waitFor();
      expect(await page.getByRole('button', { name: 'Cordon' }).count()).toBe(0);
      await open('Policy');
      await page.getByText("with an operator's key only").waitFor();
      expect(complaints).toEqual([]);
    },
    caseMs,
  );
});

// The console's pages for those who write and run functions, in a real browser, on a live platform with simulated GPUs.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import AdmZip from 'adm-zip';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { runBinary } from '../cli/wsk-process.js';
import { violationsOf } from '../support/accessibility.js';
import { complaintsOf } from '../support/browser-complaints.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 180_000;
const soonMs = 30_000;
const browserPath = spawnSync('sh', ['-c', 'command -v chromium']).stdout.toString().trim();
const pictures = new URL('../../../build/pictures/', import.meta.url).pathname;
const gpuwhisk = fileURLToPath(new URL('../../../bin/gpuwhisk', import.meta.url));
const flags = ['--gpus', 'sim:a100-40x2', '--set', 'gpu.policy=least-loaded'];
const markup = '<img src=x onerror="document.title=1">';

const hello = `function main({ name = 'you' }) {
  console.log('greets', name);
  return { greeting: 'Hello ' + name };
}`;
const noisy = `function main({ lines = 1 }) {
  for (let at = 0; at < lines; at++) console.log(at, ${JSON.stringify(markup)});
  return { bytes: 'A'.repeat(200000), text: ${JSON.stringify(markup)} };
}`;
const failing = 'function main() { throw new Error("out of order"); }';
const slow = `async function main() {
  for (let turn = 0; turn < 12; turn++) {
    console.log('turn', turn);
    await new Promise((end) => setTimeout(end, 500));
  }
  return { done: 1 };
}`;
const training = `import time
def main(args):
    for at in range(600):
        print('epoch', at, flush=True)
        time.sleep(0.2)
    return {}
`;

(browserPath === '' ? describe.skip : describe)('the console, for authors', () => {
  let platform: RunningPlatform;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  /** What the browser complained of, or asked of other hosts. */
  let complaints: string[];

  beforeAll(async () => {
    platform = await startPlatform({ flags });
    const { api } = platform;
    browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    await api.putAction('hello', hello, { limits: { timeout: 5000 } });
    await api.putAction('failing', failing);
    await api.putAction('noisy', noisy);
    await api.putAction('a & b @ night', hello);
    await api.putAction('on-gpu', hello, { annotations: { gpu: { memoryMiB: 2048, mpsPercent: 50 } } });
    const zip = new AdmZip();
    zip.addFile('index.js', Buffer.from(`exports.main = ${hello}`));
    await api.putAction('zipped', zip.toBuffer());
    await api.request('PUT', '_/actions/chain?overwrite=true', {
      exec: { kind: 'sequence', components: ['/_/hello', '/_/hello'] },
    });
    mkdirSync(pictures, { recursive: true });
  }, caseMs);
  afterAll(async () => {
    await browser.close();
    await platform.stop();
  }, caseMs);
  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    page = await context.newPage();
    complaints = complaintsOf(page, platform.consoleUrl);
  }, caseMs);
  afterEach(async () => {
    await context.close();
  });

  async function open(...parts: string[]): Promise<void> {
    await page.goto(`${platform.consoleUrl}/console/#/${parts.map(encodeURIComponent).join('/')}`);
    await page.getByLabel('Key').fill(platform.auth);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'gpuwhisk' }).waitFor();
  }
  /** Keeps pictures of the page, and expects no violation of accessibility in light and dark, and no more width than a phone has. */
  async function look(name: string): Promise<void> {
    for (const [suffix, colorScheme, width] of [
      ['light', 'light', 1280],
      ['dark', 'dark', 1280],
      ['phone', 'light', 360],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 600 });
      await page.screenshot({ path: `${pictures}${name}-${suffix}.png`, fullPage: true });
      if (width === 360) {
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
        continue;
      }
      const violations = await violationsOf(page, colorScheme);
      expect(violations.map(({ id, nodes }) => [name, suffix, id, nodes.map(({ html }) => html)])).toEqual([]);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  }
  /** The complaints, without the browser's notes of records that are not there yet and of a function that fails. */
  const faults = (): string[] =>
    complaints.filter(
      (one) =>
        !/ 404 .*\/api\/v1\/namespaces\/_\/activations\/[0-9a-f]{32}(\/logs\?follow=true)?$/.test(one) &&
        !/ 502 .*\/api\/v1\/namespaces\/_\/actions\/hello\?blocking=true$/.test(one),
    );

  test(
    'functions are listed, filtered, and reached with the keyboard alone',
    async () => {
      await open('functions');
      const rows = page.getByRole('table', { name: 'Functions' }).getByRole('row');
      await until('all are listed', async () => (await rows.count()) === 8, soonMs);
      expect(await rows.filter({ hasText: 'zipped' }).getByRole('cell').nth(1).textContent()).toBe('nodejs:24');
      await look('functions');
      await page.getByLabel('With a GPU only').check();
      expect(await rows.count()).toBe(2);
      await page.getByLabel('With a GPU only').uncheck();
      await page.getByLabel('Name contains').fill('& B');
      expect(await rows.count()).toBe(2);
      await page.getByRole('link', { name: 'a & b @ night' }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'a & b @ night' }).waitFor();
      // The focus moves once the page is drawn.
      await page.waitForFunction("document.activeElement.tagName === 'H1'", undefined, { timeout: soonMs });
      expect(faults()).toEqual([]);
    },
    caseMs,
  );

  test(
    'a function is written, refused under the name of another, and called',
    async () => {
      await open('functions');
      await page.getByRole('link', { name: 'New function' }).click();
      const python = /^python:.*/;
      const label = (await page.locator('option').filter({ hasText: python }).first().textContent()) ?? '';
      await page.getByLabel('Kind').selectOption({ label });
      await page.getByLabel('GPU memory').fill('1024');
      await page.getByLabel('Name').fill('hello');
      await page.getByRole('textbox', { name: 'Code' }).waitFor();
      await look('new-function');
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('alert').filter({ hasText: 'resource already exists' }).waitFor();
      await page.getByLabel('Name').fill('written here');
      await page.getByRole('textbox', { name: 'Code' }).focus();
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.insertText("def main(args):\n    return {'sum': args['a'] + 1}\n");
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { name: 'written here' }).waitFor();
      await page.getByLabel('Input (JSON)').fill('{"a": 41}');
      await page.getByRole('button', { name: 'Invoke' }).click();
      await page.getByText('"sum": 42').waitFor();
      const { body } = await platform.api.request('GET', '_/actions/written%20here');
      expect(body).toMatchObject({
        exec: { kind: expect.stringMatching(python) },
        annotations: expect.arrayContaining([{ key: 'gpu', value: { memoryMiB: 1024 } }]),
      });
      await platform.api.request('DELETE', '_/actions/written%20here');
      expect(faults().filter((one) => !/ 409 .*actions\/hello$/.test(one))).toEqual([]);
    },
    caseMs,
  );

  test(
    'a function is changed, another change is noticed, and a bad version is rolled back',
    async () => {
      await open('functions', 'hello');
      const editor = page.getByRole('textbox', { name: 'Code of version' });
      const write = async (code: string): Promise<void> => {
        await editor.focus();
        await page.keyboard.press('ControlOrMeta+a');
        await page.keyboard.insertText(code);
      };
      await write(hello.replace('Hello', 'Good evening'));
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('status').filter({ hasText: 'Version 0.0.2.' }).waitFor();

      await write(failing);
      await platform.api.putAction('hello', hello.replace('Hello', 'Welcome'));
      await page.getByText('Version 0.0.3 was saved').waitFor();
      await page.getByRole('button', { name: 'Save over version 0.0.3' }).click();
      await page.getByRole('status').filter({ hasText: 'Version 0.0.4.' }).waitFor();
      await page.getByRole('button', { name: 'Invoke' }).click();
      await page.getByText('out of order').first().waitFor();

      await page.getByRole('button', { name: 'Show 0.0.2' }).click();
      await page.getByRole('textbox', { name: 'Code of version 0.0.2' }).waitFor();
      await page.getByRole('button', { name: 'Roll back to 0.0.3' }).click();
      await page.getByText('Version 0.0.3 is back, as version 0.0.5.').waitFor();
      await page.getByRole('row', { name: /^0\.0\.5 .* present$/ }).waitFor();
      await page.getByRole('button', { name: 'Invoke' }).click();
      await page.getByText('"greeting": "Welcome you"').waitFor();
      await look('function');
      expect(faults()).toEqual([]);

      const call = (...words: string[]) =>
        runBinary(gpuwhisk, ['action', ...words, '--apihost', platform.url, '--auth', platform.auth], {
          directory: pictures,
        });
      const listed = await call('versions', 'hello');
      expect(
        listed.stdout
          .replaceAll(/\d{4}-\S+Z/g, 'TIME')
          .split('\n')
          .slice(0, 2),
      ).toEqual(['0.0.5       TIME  nodejs:24  present', '0.0.4       TIME  nodejs:24']);
      const back = await call('rollback', 'hello', '--version', '0.0.1');
      expect([back.stdout, back.stderr]).toEqual(['ok: rolled back action hello, which has version 0.0.6 now\n', '']);
      expect((await platform.api.invokeForResult('hello')).body).toEqual({ greeting: 'Hello you' });
      const none = await call('rollback', 'hello', '--version', '7.0.0');
      expect([none.code, none.stderr]).toEqual([
        1,
        expect.stringContaining("Version '7.0.0' of the action is not kept"),
      ]);
    },
    caseMs,
  );

  test(
    'binary code is given as a file; input that is no JSON, huge logs and results, and markup do no harm',
    async () => {
      await open('functions', 'zipped');
      await page.getByText('A zip archive of').waitFor();
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download' }).click(),
      ]);
      expect(file.suggestedFilename()).toBe('zipped.zip');
      expect(
        readFileSync(await file.path())
          .subarray(0, 2)
          .toString(),
      ).toBe('PK');

      await page.goto(`${platform.consoleUrl}/console/#/functions/noisy`);
      await page.getByRole('heading', { name: 'noisy' }).waitFor();
      const input = page.getByLabel('Input (JSON)');
      await input.fill('{"lines": ');
      await page.getByRole('alert').filter({ hasText: 'The input is no JSON' }).waitFor();
      expect(await page.getByRole('button', { name: 'Invoke' }).isDisabled()).toBe(true);
      await input.fill('{"lines": 5000}');
      await page.getByRole('button', { name: 'Invoke' }).click();
      const log = page.getByRole('table', { name: 'Logs' });
      await log.waitFor();
      expect(await log.getAttribute('aria-rowcount')).toBe('5001');
      expect(await log.getByRole('row').count()).toBeLessThan(60);
      await page.getByText(/The first 20000 characters of \d+ are shown/).waitFor();
      expect(await page.evaluate('[document.title, document.images.length]')).toEqual(['gpuwhisk', 0]);
      await look('function-noisy');
      expect(faults()).toEqual([]);
    },
    caseMs,
  );

  test(
    'activations are listed far back, errors alone, and each says where its time went and why it was placed there',
    async () => {
      const { api } = platform;
      for (let count = 0; count < 25; count++) {
        await Promise.all(Array.from({ length: 10 }, () => api.invoke('hello')));
      }
      const { record } = await api.run('on-gpu');
      const chain = await api.run('chain');
      // A clock that is wrong by decades changes nothing that is shown.
      await page.clock.setFixedTime(new Date('2001-02-03T04:05:06Z'));
      await open('activations');
      const list = page.getByRole('table', { name: 'Activations' });
      await list
        .getByText(/^(now|[\d.]+ s ago)$/)
        .first()
        .waitFor();
      const rowCount = async (): Promise<number> => Number(await list.getAttribute('aria-rowcount')) - 1;
      expect(await rowCount()).toBe(200);
      await look('activations');
      await list.evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await until('older ones are read', async () => (await rowCount()) > 250, soonMs);
      await page.getByLabel('Errors').selectOption('only');
      const failures = list.getByText('developer error').or(list.getByText('application error'));
      // The list is empty while it is read again.
      await until(
        'only failures are shown',
        async () => {
          const rows = await rowCount();
          return rows > 0 && rows < 10 && (await failures.count()) === rows;
        },
        soonMs,
      );

      await page.goto(`${platform.consoleUrl}/console/#/activations/${record.activationId}`);
      await page.getByText(/^Placed on GPU-\S+ of invoker0 with/).waitFor();
      await page.getByRole('row', { name: /^Queue / }).waitFor();
      await page.getByText('Ran on GPU-').waitFor();
      await page.getByText(/^(Queued .*r|Started .*r|R)an \d/).waitFor();
      await look('activation');
      await page.getByRole('link', { name: 'on-gpu' }).click();
      await page.getByRole('heading', { name: 'Forecast against actual' }).waitFor();
      await page.getByRole('region', { name: 'Measured times' }).waitFor({ timeout: soonMs });
      await page.getByRole('figure').getByText('Requests a minute', { exact: true }).waitFor();
      await look('function-gpu');
      await page.goto(`${platform.consoleUrl}/console/#/activations/${chain.record.activationId}`);
      await page.getByRole('listitem').getByRole('link', { name: 'hello' }).first().click();
      await page.getByText('as a part of').waitFor();

      await page.goto(`${platform.consoleUrl}/console/#/activations`);
      await page.getByRole('searchbox', { name: 'Function' }).fill('failing');
      await page.getByRole('button', { name: 'Show' }).click();
      await page.getByText('None.').waitFor();
      expect(faults()).toEqual([]);
    },
    caseMs,
  );

  test(
    'an activation is followed from its beginning',
    async () => {
      const { api } = platform;
      await api.putAction('slow', slow);
      const id = await api.submit('slow');
      await open('activations', id);
      await page.getByText('There is no record yet').waitFor();
      await page.getByRole('heading', { name: 'Logs until now' }).waitFor();
      await page.getByLabel('Logs').getByText('turn 2').waitFor();
      expect(await page.getByText('There is no record yet').count()).toBe(1);
      await page.getByText('"done": 1').waitFor({ timeout: soonMs });
      expect(faults()).toEqual([]);
    },
    caseMs,
  );

  test(
    'jobs show their progress and log as they run, and can be stopped; workloads show their bound',
    async () => {
      const { api } = platform;
      await api.putAction('train', training, {
        kind: 'python:default',
        annotations: { gpu: { memoryMiB: 1024, class: 'training' } },
      });
      const ask = (path: string, body: object) =>
        fetch(`${platform.url}/api/v1/gpu/${path}`, {
          method: 'POST',
          headers: { authorization: `Basic ${btoa(platform.auth)}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      expect((await ask('workloads', { name: 'resnet', start: true, mpsPercent: 20 })).status).toBe(200);
      expect((await ask('jobs', { action: 'train' })).status).toBe(200);
      await open('jobs');
      await page.getByRole('table', { name: 'Workloads' }).getByText('resnet').waitFor();
      await page.getByRole('table', { name: 'Training jobs' }).getByText('running').waitFor({ timeout: soonMs });
      await look('jobs');
      await page.getByRole('link', { name: 'train' }).click();
      await page.getByRole('heading', { name: 'Job train' }).waitFor();
      await page.getByLabel('Logs').getByText('epoch 3').first().waitFor({ timeout: soonMs });
      await look('job');
      await page.getByRole('button', { name: 'Stop the job' }).click();
      await page.getByText(/^stopped/).waitFor({ timeout: 60_000 });
      expect(faults()).toEqual([]);
    },
    caseMs,
  );

  test(
    'a link that leads out of the API sends the key to no web action',
    async () => {
      const asked: string[] = [];
      page.on('request', (request) => asked.push(new URL(request.url()).pathname));
      await open('functions', '../../../web/mallory/default/steal');
      await page.getByText('The function cannot be shown: There is nothing of this name').waitFor();
      await page.goto(`${platform.consoleUrl}/console/#/activations/..%2F..%2F..%2Fweb%2Fmallory%2Fdefault%2Fsteal`);
      await page.getByText('its id must be of 32 hexadecimal digits').waitFor();
      await page.goto(`${platform.consoleUrl}/console/#/functions/hello`);
      await page.getByRole('heading', { name: 'Invoke' }).waitFor();
      expect(asked).toContain('/api/v1/namespaces/_/actions/hello');
      expect(asked.filter((path) => /\/(web|mallory)\b/.test(path))).toEqual([]);
    },
    caseMs,
  );

  test('the operator is told which key has functions', async () => {
    await page.goto(`${platform.consoleUrl}/console/#/functions`);
    await page.getByLabel('Key').fill(platform.operatorAuth);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Sign in with the key of a namespace.').waitFor();
    await page.getByRole('link', { name: 'Activations' }).click();
    await page.getByText('has no activations of its own').waitFor();
  });
});

test('all files of the console together are below 400 kB compressed', () => {
  const folder = fileURLToPath(new URL('../../../build/console/assets', import.meta.url));
  const sizes = readdirSync(folder).map((file) => gzipSync(readFileSync(join(folder, file))).length);
  expect(sizes.length).toBeGreaterThan(2);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(400_000);
});

// A tenant's web page in the browser of an operator who has signed in to the console.
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { newSubject } from '../support/operator.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { caseMs } from './tenants.js';

const browserPath = spawnSync('sh', ['-c', 'command -v chromium']).stdout.toString().trim();
const soonMs = 20_000;
const page = `function main() {
  return { headers: { 'content-type': 'text/html' }, body: '<!doctype html><title>page of the attacker</title>' };
}`;

/** What the page tries against the console at `url`; each attempt gives what it got. */
const attack = (url: string): string => `(async () => {
  // A browser that asks for a key answers late.
  const late = () => new Promise((resolve) => setTimeout(resolve, 3000, 'no answer'));
  const tried = (attempt) => Promise.race([Promise.resolve().then(attempt).catch(() => 'refused'), late()]);
  const stored = () => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]);
  const framed = () => new Promise((resolve) => {
    const frame = document.body.appendChild(document.createElement('iframe'));
    frame.onload = () => resolve(frame.contentDocument === null ? 'refused' : frame.contentDocument.body.innerText);
    frame.src = '${url}/console/';
  });
  const opened = async () => {
    const other = window.open('${url}/console/');
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return other === null || other.closed ? 'refused' : other.document.body.innerText;
  };
  const asked = async (credentials) => (await fetch('${url}/api/v1/viewer', { credentials })).status;
  const worked = () => navigator.serviceWorker.register(location.pathname, { scope: '/console/' }).then(() => 'a worker');
  return {
    storage: stored(),
    framed: await tried(framed),
    opened: await tried(opened),
    asked: [await tried(() => asked('omit')), await tried(() => asked('include'))],
    worked: await tried(worked),
  };
})()`;

(browserPath === '' ? describe.skip : describe)('the web page of a tenant', () => {
  let platform: RunningPlatform;
  let browser: Browser;
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--stem-cells', 'false', '--gpus', 'none'] });
    browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  }, caseMs);
  afterAll(async () => {
    await browser.close();
    await platform.stop();
  }, caseMs);

  test(
    'reaches nothing of a console that is signed in to in the same browser',
    async () => {
      const attacker = await newSubject(platform, 'attacker', {});
      await attacker.putAction('page', page, { annotations: { 'web-export': true } });
      const path = '/api/v1/web/attacker/default/page.http';
      const context = await browser.newContext();

      context.setDefaultTimeout(soonMs);
      const victim = await context.newPage();
      await victim.goto(`${platform.url}/console`);
      expect(new URL(victim.url()).origin).toBe(platform.consoleUrl);
      await victim.getByLabel('Key').fill(platform.operatorAuth);
      await victim.getByRole('button', { name: 'Sign in' }).click();
      await victim.getByRole('heading', { name: 'Overview' }).waitFor();
      // The key is in memory only, and what this origin keeps is out of the attacker's reach.
      const kept = 'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])';
      expect(await victim.evaluate(kept)).toBe('[{},{},""]');
      await victim.evaluate("localStorage.kept = sessionStorage.kept = 'of the console'");

      const hostile = await context.newPage();
      await hostile.goto(platform.url + path);
      expect(await hostile.title()).toBe('page of the attacker');
      expect(await hostile.evaluate(attack(platform.consoleUrl))).toEqual({
        storage: '[{},{},""]',
        framed: 'refused',
        opened: 'refused',
        asked: ['refused', 'refused'],
        worked: 'refused',
      });
      // On the console's listener there is no such page.
      const answer = await hostile.goto(platform.consoleUrl + path);
      expect(answer?.status()).toBe(401);
      await context.close();
    },
    caseMs,
  );
});

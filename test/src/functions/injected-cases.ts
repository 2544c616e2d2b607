// Bad functions that are injected: each ends in a clear error, and the next one in the same MSContainer runs right.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openSync, closeSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { annotation, logTexts } from '../support/api-client.js';
import type { ActionOptions } from '../support/api-client.js';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { manifestWithStemCells, prewarmersOf } from '../support/stem-cells.js';

/** A function that is uploaded. */
export interface Upload {
  code: string | Buffer;
  main?: string;
}

/** A function that goes wrong or leaves something behind. */
export interface BadCase {
  name: string;
  upload: () => Upload;
  limits?: NonNullable<ActionOptions['limits']>;
  /** What of its record's response; by default that of an error of its developer. */
  status?: 'success' | 'application error' | 'action developer error';
  /** In its result or its logs. */
  says: RegExp;
  /** Its process cannot go on: another one of the MSContainer takes the next function. */
  isReplaced?: boolean;
  /** What is changed in the store after the upload: each byte of it becomes `~`. */
  damaged?: string;
}

/** What is run after each: answers with its process's id as `pid`. */
export interface Family {
  name: string;
  /** Why it cannot be tested here. */
  lack?: string;
  /** The platform's; default: one of its own. */
  dataDir?: string;
  /** Called once, before `upload` of any case. */
  good: () => Upload | Promise<Upload>;
  cases: readonly BadCase[];
}

const startMs = 180_000;
const caseMs = 60_000;
/** Said each time: an update keeps what it does not say. */
const ordinary = { timeout: 30_000 };

/** One container's memory is all that the platform has, so that the next function can only run where the bad one ran. */
export function testBadFunctions({ name: family, lack, dataDir = newDataDir(), good, cases }: Family): void {
  const suite = lack === undefined ? describe : describe.skip;
  suite(`bad functions of ${family}, injected${lack === undefined ? '' : ` (skipped: ${lack})`}`, () => {
    const kind = `${family}:default`;
    let platform: RunningPlatform;
    let msContainer: string | undefined;

    beforeAll(async () => {
      const manifest = manifestWithStemCells(join(dataDir, '..'), [family]);
      platform = await startPlatform({ dataDir, flags: ['--memory', '256', '--runtimes', manifest] });
      await ready(startMs);
      msContainer = (await prewarmersOf(platform))[0]?.msContainer;
      await put('good', await good());
    }, startMs);
    afterAll(async () => {
      await platform?.stop();
      removeDataDir(dataDir);
    });

    const ready = (withinMs: number) =>
      until('one is ready', async () => (await prewarmersOf(platform)).length === 1, withinMs);
    const put = (name: string, { code, main }: Upload, limits?: BadCase['limits']) =>
      platform.api.putAction(name, code, {
        kind,
        ...(main !== undefined && { main }),
        limits: { ...ordinary, ...limits },
      });

    async function goodRun(): Promise<{ pid: unknown; start: unknown }> {
      const { status, record } = await platform.api.run('good');
      expect({ status, response: record.response }).toMatchObject({ status: 200, response: { success: true } });
      return { pid: record.response.result.pid, start: annotation(record, 'start') };
    }

    test.each(cases)(
      '$name',
      async ({ upload, limits, status = 'action developer error', says, isReplaced = false, damaged }) => {
        const { pid } = await goodRun();
        await put('bad', upload(), limits);
        if (damaged !== undefined) damage(join(dataDir, 'store'), damaged);
        const bad = await platform.api.run('bad');
        expect({ http: bad.status, status: bad.record.response.status }).toEqual({
          http: status === 'success' ? 200 : 502,
          status,
        });
        expect([JSON.stringify(bad.record.response.result), ...logTexts(bad.record)].join('\n')).toMatch(says);
        expect(annotation(bad.record, 'start')).toBe('injected');
        if (!isReplaced) return expect(await goodRun()).toEqual({ pid, start: 'injected' });
        await ready(startMs);
        const [other] = await prewarmersOf(platform);
        expect(other?.msContainer).toBe(msContainer);
        expect(await goodRun()).toEqual({ pid: other?.pid, start: 'injected' });
      },
      caseMs,
    );
  });
}

/** Overwrites a text wherever it is in the files of a folder, as a bad disk might. */
function damage(folder: string, text: string): void {
  let found = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = readFileSync(path);
    const file = openSync(path, 'r+');
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
      writeSync(file, '~'.repeat(text.length), at);
      found += 1;
    }
    closeSync(file);
  }
  if (found === 0) throw new Error(`${folder} does not have the text.`);
}

/** Text that makes code long enough to be stored apart, with one that is found in it. */
export const marker = 'the-digest-tells';
export const padding = `${marker} ${'.'.repeat(20_000)}`;

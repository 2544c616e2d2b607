// Bad functions that are injected: each ends in a clear error, and the next function in the same MSContainer runs
// correctly.
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

/** A function that fails or leaves data behind. */
export interface BadCase {
  name: string;
  upload: () => Upload;
  limits?: NonNullable<ActionOptions['limits']>;
  /** Status of the record's response; default: that of a developer error. */
  status?: 'success' | 'application error' | 'action developer error';
  /** A text in the result or the logs. */
  says: RegExp;
  /** Whether its process cannot continue: another process of the MSContainer takes the next function. */
  isReplaced?: boolean;
  /** A text that is damaged in the store after the upload: each of its bytes becomes `~`. */
  damaged?: string;
}

/** The functions of one language. */
export interface Family {
  name: string;
  /** The reason if the language cannot be tested here. */
  lack?: string;
  /** Data folder of the platform; default: a new one. */
  dataDir?: string;
  /**
   * The function that runs after each case and answers with its process's id as `pid`. Called once, before any case's
   * `upload`.
   */
  good: () => Upload | Promise<Upload>;
  cases: readonly BadCase[];
}

const startMs = 180_000;
const caseMs = 60_000;
/** Limits that each update repeats: an update keeps limits that it does not name. */
const ordinary = { timeout: 30_000 };

/** The platform has memory for one container, so that the next function can only run in the bad one's container. */
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

/** Overwrites a text wherever a folder's files contain it, as a bad disk might. */
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

/** Text that makes code long enough to be stored as an attachment, and that is found in it. */
export const marker = 'the-digest-tells';
export const padding = `${marker} ${'.'.repeat(20_000)}`;

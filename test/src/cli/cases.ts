import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startFakeOpenWhisk, type Answer, type FakeOpenWhisk } from './fake-openwhisk.js';
import { runWsk, withFolder } from './wsk-process.js';

/** One run of wsk: the server's answers, and the expected requests, output and exit code. */
export interface Case {
  /** The command line after the connection flags; as a list where a word holds a space. */
  wsk: string | string[];
  /** The server's answers, in order. */
  answers?: Answer[];
  /** Files in the folder in which wsk runs. */
  files?: Record<string, string | Buffer>;
  /** The exact requests, in order, without `/api/v1/namespaces/_`. Default: none. */
  requests?: string[];
  /** Default: 0. */
  code?: number;
  /** Exact output; a line end is added if the text has none. Default: nothing. */
  stdout?: string;
  stderr?: string;
}

export const usageHint = "Run 'wsk --help' for usage.";

/** The line of an error, with the hint that follows most errors. */
export function errorWithHint(message: string): string {
  return `error: ${message}\n${usageHint}\n`;
}

/** JSON as wsk prints it. */
export function printed(value: unknown): string {
  return `${JSON.stringify(value, null, 4)}\n`;
}

/** Runs every case against one fake server. */
export function describeCases(title: string, cases: Case[]): void {
  describe(title, () => {
    let server: FakeOpenWhisk;
    beforeAll(async () => {
      server = await startFakeOpenWhisk();
    });
    afterAll(() => server.close());

    for (const one of cases) {
      const words = typeof one.wsk === 'string' ? one.wsk.split(' ') : one.wsk;
      test(`wsk ${words.join(' ')}`, () => check(one, words, server));
    }
  });
}

function check(one: Case, words: string[], server: FakeOpenWhisk): Promise<void> {
  return withFolder(async (directory) => {
    for (const [name, content] of Object.entries(one.files ?? {})) await writeFile(join(directory, name), content);
    server.expect(one.answers ?? []);
    const result = await runWsk(['--apihost', server.url, '--auth', 'user:secret', ...words], { directory });
    const base = '/api/v1/namespaces/_';
    expect({
      ...result,
      requests: server.requests.map(({ line }) => line.replace(`${base}/`, '/').replace(server.url, '')),
    }).toEqual({
      code: one.code ?? 0,
      stdout: complete(one.stdout),
      stderr: complete(one.stderr),
      requests: one.requests ?? [],
    });
  });
}

function complete(text = ''): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

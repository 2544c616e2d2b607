import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { documentPaths, readResults, withFigures } from '@gpuwhisk/bench/documents/figures';
import { repositoryDir } from '@gpuwhisk/bench/machine';
import { replayTable, replayTables, researchWriter } from './figures.js';

const marked = /^<!-- figures [^\n]+?: written by (.*) -->$/gm;

test('the documents hold the figures of research/results (npm run research -- figures writes them)', async () => {
  const measured = await readResults();
  let blocks = 0;
  for (const path of await documentPaths()) {
    const document = await readFile(join(repositoryDir, path), 'utf8');
    expect(`${path}\n${document}`).toBe(`${path}\n${withFigures(document, measured, researchWriter)}`);
    for (const [, writer = ''] of document.matchAll(marked)) {
      expect(['npm run bench -- figures', 'npm run research -- figures']).toContain(writer);
      if (writer.includes('research')) blocks += 1;
    }
  }
  expect(blocks).toBeGreaterThan(0);
});

test('a table of the replay stands under its title, without the rows of a policy', () => {
  const replay = '**All at once**\n\n| policy | s |\n| --- | --- |\n| `faashare` | 1 |\n| `fcfs` | 2 |\n\nend';
  expect(replayTable(replay, 'All at once', 'faashare')).toBe('| policy | s |\n| --- | --- |\n| `fcfs` | 2 |');
  expect(() => replayTable(replay, 'none', 'faashare')).toThrow("no table 'none'");
  expect(replayTables()).toContain('`faashare`');
});

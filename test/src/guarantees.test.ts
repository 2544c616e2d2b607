import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../../', import.meta.url));
const promises = readFileSync(`${root}GUARANTEES.md`, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('- '));

describe('GUARANTEES.md', () => {
  test('has promises', () => {
    expect(promises.length).toBeGreaterThan(30);
  });

  test.each(promises.map((line) => [line.slice(2).split(' [')[0] ?? '', line]))('%s', (_promise, line) => {
    const citations = [...line.matchAll(/\[([^\]:]+): "([^"]+)"\]/g)];
    expect(citations.length).toBeGreaterThan(0);
    for (const [, file = '', words = ''] of citations) {
      expect(file).toMatch(/^(test\/src\/|\w+\/src\/.*\.test\.ts$)/);
      expect(readFileSync(root + file, 'utf8')).toContain(words);
    }
    expect(line.replace(/ \[[^\]]+: "[^"]+"\]/g, '')).not.toContain('test/');
  });
});

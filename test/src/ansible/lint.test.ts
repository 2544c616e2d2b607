// Runs ansible-lint's production profile on the playbooks.
import { readdirSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { hasAnsible } from './requirements.js';
import { ansible } from './playbooks.js';

(hasAnsible ? describe : describe.skip)('the playbooks', () => {
  test('pass ansible-lint', async () => {
    const { code, output } = await ansible('ansible-lint', [
      '--offline',
      '--profile',
      'production',
      '--format',
      'pep8',
    ]);
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('Passed') as unknown });
  }, 300_000);

  test.each(readdirSync(new URL('../../../ansible', import.meta.url)).filter((name) => name.endsWith('.yml')))(
    '%s is understood with the inventory of the example',
    async (playbook) => {
      const { code, output } = await ansible('ansible-playbook', [
        '-i',
        'example/hosts.yml',
        '--syntax-check',
        playbook,
      ]);
      expect({ code, output }).toMatchObject({ code: 0 });
    },
    120_000,
  );
});

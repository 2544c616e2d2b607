import { describe, expect, test } from '@jest/globals';
import { plantedBugs } from './planted-bugs.js';
import { runSeeds } from './run-seeds.js';

const seeds = 200;

describe('a planted bug is found', () => {
  test.each(Object.keys(plantedBugs))(
    `${'%s'} within ${seeds} seeds`,
    async (name) => {
      const { exitCode, output } = await runSeeds('--seeds', String(seeds), '--planted', name);
      console.info(`${name}: ${output.trim()}`);
      expect({ exitCode, output }).toEqual({ exitCode: 1, output: expect.stringMatching(/^seed \d+ failed: /) });
      expect(output).toMatch(
        new RegExp(`^again: node test/dist/simulation/run.js --seed \\d+ --planted ${name}$`, 'm'),
      );
      expect(output).not.toContain('unhandled');
    },
    600_000,
  );

  test('and the seed that is printed finds it again', async () => {
    const first = await runSeeds('--planted', 'run-on-redelivery');
    const seed = /^seed (\d+) failed/m.exec(first.output)?.[1] ?? '';
    const again = await runSeeds('--seed', seed, '--planted', 'run-on-redelivery');
    expect(again.exitCode).toBe(1);
    expect(again.output).toContain(first.output.trim());
    expect(again.output).toContain('BROKEN');
  }, 600_000);

  test('and an unknown one is refused', async () => {
    const { exitCode, output } = await runSeeds('--planted', 'nothing');
    expect(exitCode).toBe(2);
    expect(output).toContain('acknowledge-before-sync');
  });
});

import { expect, test } from '@jest/globals';
import { runDurable } from './durable-run.js';

const seeds = Number(process.env.SIMULATION_SEEDS ?? 100);
const first = Number(process.env.SIMULATION_FIRST_SEED ?? 0);

test(`${seeds} seeded histories of crashes lose nothing that was synced and invent nothing`, async () => {
  const totals = { sent: 0, delivered: 0, redelivered: 0, crashes: 0, damage: 0, failures: 0 };
  for (let seed = first; seed < first + seeds; seed++) {
    try {
      const run = await runDurable(seed);
      for (const key of Object.keys(totals) as (keyof typeof totals)[]) totals[key] += run[key];
    } catch (error) {
      const again = `SIMULATION_FIRST_SEED=${seed} SIMULATION_SEEDS=1 npx jest durable-log`;
      throw new Error(`seed ${seed} (again: ${again}): ${(error as Error).message}`, { cause: error });
    }
  }
  // The histories test the log only if all these events happened in them.
  for (const total of Object.values(totals)) expect(total).toBeGreaterThan(seeds / 10);
}, 600_000);

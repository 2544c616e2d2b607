import { expect, test } from '@jest/globals';
import { comparison } from './quota-compare.js';

const shares = [10, 20, 30, 50, 70, 100];
const surface = (model: string) => ({ model, batch: 1, shares, slowdowns: shares.map((share) => 100 / share) });

test('too few models for sets of different ones are refused, and said', async () => {
  const rapp = Array.from({ length: 14 }, (_, at) => surface(`m${at}`));
  const options = { rapp, igniter: rapp.slice(0, 4), sets: 5, seed: 1, say: () => undefined };
  await expect(comparison(options)).rejects.toThrow(
    'Sets of 3 jobs need 3 models in each of 5 parts that are left out in turn, and one has 2: at least 15 models are needed.',
  );
});

import { expect, test } from '@jest/globals';
import type { Sharing } from '../view/decision.js';
import { countSharing, newShareCounts } from './share-counts.js';

const sharing = (answer: Sharing['answer'], changes: Partial<Sharing> = {}): Sharing => ({
  ...{ gpu: 'g', tasks: 2, source: 'filling', chosenMs: 100, fillingMs: 100 },
  ...(answer !== undefined && { answer }),
  ...changes,
});

test('choices that put tasks together are counted by answer, with the times of both choices', () => {
  const counts = newShareCounts();
  const choices = [
    sharing('hit', { source: 'hit', chosenMs: 80 }),
    sharing('hit'),
    sharing('nearest'),
    sharing('guardrail', { source: 'guardrail', chosenMs: 130 }),
    sharing('guardrail', { tasks: 1 }),
    sharing(undefined, { source: 'owner' }),
    sharing('hit', { chosenMs: NaN }),
    sharing('hit', { fillingMs: Infinity }),
  ];
  for (const choice of choices) countSharing(counts, choice);
  expect(counts).toEqual({
    hit: { choices: 2, taken: 1, chosenMs: 180, fillingMs: 200 },
    near: { choices: 1, taken: 0, chosenMs: 100, fillingMs: 100 },
    miss: { choices: 1, taken: 1, chosenMs: 130, fillingMs: 100 },
  });
});

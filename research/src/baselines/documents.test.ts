// The table of docs/baselines.md has the policies of the module.
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { compositionOf } from '@gpuwhisk/gpu/policies/make-policy';
import module from './module.js';
import { baselines } from './register.js';

const page = readFileSync(new URL('../../../docs/baselines.md', import.meta.url), 'utf8');

test('the table of stages is the module', () => {
  const row = /^\| `([^`]+)` \| `([^`]+)`(\*?) \| `([^`]+)`(\*?) \| (?:`([^`]+)`(\*?))? ?\| (?:`([^`]+)`(\*?))? ?\|/gm;
  const told = [...page.matchAll(row)].map(([, name, admit, , order, ownOrder, share, ownShare, place, ownPlace]) => {
    const named = share === undefined ? { admit, plan: order } : { admit, order, share, place };
    const marks = share === undefined ? { plan: ownOrder } : { order: ownOrder, share: ownShare, place: ownPlace };
    return [name, { named, own: Object.keys(marks).filter((stage) => marks[stage as keyof typeof marks] === '*') }];
  });
  const known = baselines.map((name) => {
    const { preempt, scale, geometry, procure, ...named } = compositionOf(name).stages;
    const further = Object.entries({ preempt, scale, geometry, procure }).filter(([, chosen]) => chosen !== 'none');
    // The other stages are told below the table.
    for (const [stage, chosen] of further) {
      expect(page).toMatch(new RegExp(['`', name, '`[^.]* ', stage, ' `', chosen, '`'].join('')));
    }
    const stages: Readonly<Record<string, object | undefined>> = module.stages ?? {};
    const own = Object.entries(named).filter(([stage, chosen]) => Object.hasOwn(stages[stage] ?? {}, chosen ?? ''));
    return [name, { named, own: own.map(([stage]) => stage) }];
  });
  expect(Object.fromEntries(told)).toEqual(Object.fromEntries(known));
});

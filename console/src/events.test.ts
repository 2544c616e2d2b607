import { expect, test } from '@jest/globals';
import { changedList, eventReader } from './events.js';

test('events are read from pieces of a stream, wherever it was cut', () => {
  const text = 'event: beat\ndata: {"at":1}\n\nevent: value\ndata: {"of":"a","value":"x\\n\\ny"}\n\n';
  const whole = eventReader()(text);
  expect(whole).toEqual([
    { event: 'beat', data: { at: 1 } },
    { event: 'value', data: { of: 'a', value: 'x\n\ny' } },
  ]);
  const read = eventReader();
  expect([...text].flatMap((letter) => read(letter))).toEqual(whole);
});

test('line separators of Unicode within JSON end no event', () => {
  const value = 'one\u2028two\u2029three';
  expect(eventReader()(`event: value\ndata: ${JSON.stringify({ value })}\n\n`)).toEqual([
    { event: 'value', data: { value } },
  ]);
});

test('a changed list keeps its order and the entries that have not changed', () => {
  const [one, two, three] = [{ uuid: 'a' }, { uuid: 'b', used: 1 }, { namespace: 'n', name: 'c' }] as const;
  const changed = changedList([one, two, three], [{ uuid: 'd' }, { uuid: 'b', used: 2 }], ['n/c']);
  expect(changed).toEqual([{ uuid: 'a' }, { uuid: 'b', used: 2 }, { uuid: 'd' }]);
  expect(changed[0]).toBe(one);
});

import { describe, expect, test } from '@jest/globals';
import { CouchError, Turns } from './couchdb-client.js';

const never = new AbortController().signal;

describe('turns', () => {
  test('are taken first come first served, so many at once', async () => {
    const turns = new Turns(2, 10);
    const taken: number[] = [];
    const take = (n: number) => turns.take(never).then((end) => (taken.push(n), end));
    const [first, second, third, fourth] = [take(1), take(2), take(3), take(4)];
    const [endFirst] = await Promise.all([first, second]);
    expect(taken).toEqual([1, 2]);
    endFirst();
    (await third)();
    await fourth;
    expect(taken).toEqual([1, 2, 3, 4]);
  });

  test('who comes when too many wait is refused at once', async () => {
    const turns = new Turns(1, 1);
    const end = await turns.take(never);
    const waiting = turns.take(never);
    await expect(turns.take(never)).rejects.toThrow('1 requests wait already');
    end();
    (await waiting)();
    await expect(turns.take(never)).resolves.toBeInstanceOf(Function);
  });

  test('who gives up waits no more, and gets no turn', async () => {
    const turns = new Turns(1, 1);
    const end = await turns.take(never);
    const giveUp = new AbortController();
    const waiting = turns.take(giveUp.signal);
    giveUp.abort();
    await expect(waiting).rejects.toBeInstanceOf(CouchError);
    const next = turns.take(never);
    end();
    await expect(next).resolves.toBeInstanceOf(Function);
  });
});

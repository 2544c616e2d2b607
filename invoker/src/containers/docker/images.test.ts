import { describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../container-factory.js';
import { EngineError } from './engine-client.js';
import { Images, withTag } from './images.js';

/** An engine with the images `present` and a registry with the images `there`; pulls wait until `release` is called. */
function engineWith(present: string[], there: string[] = []) {
  const images = new Set(present);
  const pulls: string[] = [];
  const waiting: (() => void)[] = [];
  let held = false;
  return {
    pulls,
    hold: () => (held = true),
    release: () => waiting.splice(0).forEach((go) => go()),
    image: async (name: string) => (images.has(name) ? { id: `id of ${name}`, labels: {} } : undefined),
    pull: async (name: string) => {
      pulls.push(name);
      if (held) await new Promise<void>((done) => waiting.push(done));
      if (!there.includes(name)) throw new EngineError('manifest unknown', 404);
      images.add(name);
    },
  };
}

const never = (): boolean => false;

describe('images', () => {
  test('of the manifest are fetched only where they lack', async () => {
    const engine = engineWith(['a:1'], ['b:1']);
    const images = new Images(engine, systemClock, () => true);
    expect(await images.ready('a:1')).toMatchObject({ id: 'id of a:1' });
    expect(engine.pulls).toEqual([]);
    expect(await images.ready('b:1')).toMatchObject({ id: 'id of b:1' });
    await images.ready('b:1');
    expect(engine.pulls).toEqual(['b:1']);
  });

  test('of others are fetched once for all that ask, and are fresh for a while', async () => {
    const engine = engineWith([], ['x:latest']);
    const images = new Images(engine, systemClock, never);
    await Promise.all([images.ready('x'), images.ready('x'), images.ready('x:latest')]);
    await images.ready('x');
    expect(engine.pulls).toEqual(['x:latest']);
  });

  test('are fetched three at a time', async () => {
    const names = ['a:1', 'b:1', 'c:1', 'd:1', 'e:1'];
    const engine = engineWith([], names);
    engine.hold();
    const images = new Images(engine, systemClock, never);
    const all = Promise.all(names.map((name) => images.ready(name)));
    await new Promise((done) => setTimeout(done, 20));
    expect(engine.pulls).toHaveLength(3);
    const releasing = setInterval(engine.release, 5);
    await all;
    clearInterval(releasing);
    expect(engine.pulls).toHaveLength(5);
  });

  test('that cannot be had are the fault of the action', async () => {
    const images = new Images(engineWith(['x:latest', 'x:1']), systemClock, never);
    expect(await images.ready('x:1')).toMatchObject({ id: 'id of x:1' });
    for (const image of ['x', 'x:2']) {
      await expect(images.ready(image)).rejects.toMatchObject({
        message: `The image '${image}' cannot be fetched: manifest unknown.`,
        told: `Failed to pull container image '${image}'.`,
        byAction: true,
      });
    }
  });

  test('of an engine that does not answer are not', async () => {
    const gone = () => Promise.reject(new EngineError('gone', 0));
    const images = new Images({ image: gone, pull: gone }, systemClock, never);
    const refused = images.ready('x');
    await expect(refused).rejects.toBeInstanceOf(ProvisioningError);
    await expect(refused).rejects.toMatchObject({ byAction: false });
  });

  test('have a tag', () => {
    const names = ['a', 'a:1', 'host:5000/a', 'host:5000/a:1', 'a@sha256:12'];
    expect(names.map(withTag)).toEqual(['a:latest', 'a:1', 'host:5000/a:latest', 'host:5000/a:1', 'a@sha256:12']);
  });
});

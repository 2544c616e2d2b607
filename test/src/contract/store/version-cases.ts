import { describe, expect, test } from '@jest/globals';
import { readAction } from '@gpuwhisk/common/entities/action';
import { storeCode } from '@gpuwhisk/common/entities/exec-codec';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ActionVersions, mostVersions } from '@gpuwhisk/controller/actions/action-versions';
import { action } from './documents.js';
import type { StoreUnderTest } from './documents.js';

const random = seededRandom(1);

/** Registers the cases for earlier versions of actions, which lie in database `gpu` with their code. */
export function testVersions(held: StoreUnderTest): void {
  describe('earlier versions of actions', () => {
    test('the last ones are kept with their code after opening again, and go with their action', async () => {
      const written = mostVersions + 2;
      const codeOf = (number: number): string => `// ${String(number).repeat(20_000)}\n`;
      let revision: string | undefined;
      for (let number = 1; number <= written; number++) {
        const { reference, attachment } = storeCode(codeOf(number), false, random);
        const document = {
          ...action('a', number),
          version: `0.0.${number}`,
          exec: { kind: 'nodejs:20', code: { ...reference }, binary: false },
          ...(revision !== undefined && { _rev: revision }),
        };
        revision = await held.store.put('whisks', document, attachment === undefined ? [] : [attachment]);
        await new ActionVersions(held.store).keep(readAction(await held.store.get('whisks', 'guest/a')));
      }
      await held.store.close();
      held.store = await held.home.open();
      const versions = new ActionVersions(held.store);
      const present = readAction(await held.store.get('whisks', 'guest/a'));
      const before = await versions.before({ ...present, updated: written + 1 });
      expect(before.map(({ version }) => version)).toEqual(
        Array.from({ length: mostVersions }, (_, at) => `0.0.${written - at}`),
      );
      const oldest = await versions.withCode(before.at(-1) ?? present);
      expect(oldest.exec).toMatchObject({ kind: 'nodejs:20', code: codeOf(written - mostVersions + 1) });
      await versions.forget('guest/a');
      expect(await versions.before(present)).toEqual([]);
    });
  });
}

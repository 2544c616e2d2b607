import { afterEach, beforeEach, describe } from '@jest/globals';
import { testAttachments } from './store/attachment-cases.js';
import { testBatches } from './store/batch-cases.js';
import { testClosing } from './store/closing-cases.js';
import { testDocuments } from './store/document-cases.js';
import type { StoreHome, StoreUnderTest } from './store/documents.js';
import { testExpiry } from './store/expiry-cases.js';
import { testLists } from './store/list-cases.js';
import { testSizes } from './store/size-cases.js';
import { testTexts } from './store/text-cases.js';
import { testVersions } from './store/version-cases.js';
import { testViews } from './store/view-cases.js';

/** Registers the cases that every ArtifactStore must pass. */
export function testArtifactStore(name: string, makeHome: () => Promise<StoreHome>): void {
  describe(`${name} keeps the ArtifactStore contract`, () => {
    const held = {} as StoreUnderTest;

    beforeEach(async () => {
      held.home = await makeHome();
      held.store = await held.home.open();
    });

    afterEach(async () => {
      await held.store.close();
      await held.home.remove();
    });

    testDocuments(held);
    testBatches(held);
    testViews(held);
    testLists(held);
    testTexts(held);
    testExpiry(held);
    testAttachments(held);
    testVersions(held);
    testSizes(held);
    testClosing(held);
  });
}

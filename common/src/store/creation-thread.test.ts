import { afterEach, expect, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreationThread } from './creation-thread.js';
import { StoreWriteError } from './artifact-store.js';

let folder: string;

afterEach(() => rm(folder, { recursive: true, force: true }));

test('a thread that cannot start fails what it was asked for, and the next one does it', async () => {
  folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-thread-'));
  const path = join(folder, 'store');
  await writeFile(path, 'no folder');
  const thread = new CreationThread(path, () => undefined);
  const create = (documents: { _id: string }[]) => thread.create('activations', JSON.stringify(documents));
  const asked = [create([{ _id: 'a' }]), thread.merge()];
  for (const each of asked) await expect(each).rejects.toBeInstanceOf(StoreWriteError);
  await rm(path);
  await expect(create([{ _id: 'a' }, { _id: 'b' }])).resolves.toEqual([true, true]);
  await expect(create([{ _id: 'b' }, { _id: 'c' }])).resolves.toEqual([false, true]);
  await thread.close();
});

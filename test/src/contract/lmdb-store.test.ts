import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { open as openLmdb } from 'lmdb';
import { countAll } from '@gpuwhisk/common/store/lmdb-count';
import { openSizes } from '@gpuwhisk/common/store/lmdb-sizes';
import { openLmdbStore } from '@gpuwhisk/common/store/lmdb-store';
import { openRoot } from '@gpuwhisk/common/store/lmdb-table';
import { NoDocumentError, StoreOpenError } from '@gpuwhisk/common/store/artifact-store';
import { parseRow, rowKey } from '@gpuwhisk/common/store/view-key';
import { until } from '../support/running-platform.js';
import { testArtifactStore } from './artifact-store.js';
import { activation } from './store/documents.js';

const makeFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'gpuwhisk-store-'));
const removeFolder = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });

testArtifactStore('the LMDB store', async () => {
  const folder = await makeFolder();
  return { open: () => openLmdbStore(folder), remove: () => removeFolder(folder) };
});

/** A program that writes, replaces, removes and expires documents of two namespaces until it is killed. */
const writerScript = (path: string): string => `
  const { openLmdbStore } = await import(${JSON.stringify(import.meta.resolve('@gpuwhisk/common/store/lmdb-store'))});
  const store = await openLmdbStore(${JSON.stringify(path)});
  const attachment = (length) => [{ name: 'code', contentType: 'a/b', bytes: Buffer.alloc(length) }];
  const records = async () => {
    for (let start = 1; ; start++) {
      const batch = Array.from({ length: 20 }, (_, at) => {
        const namespace = at % 2 ? 'guest' : 'other';
        const activationId = String(start * 20 + at).padStart(32, '0');
        const logs = ['x'.repeat(at * 100)];
        return { _id: namespace + '/' + activationId, namespace, name: 'a', activationId, start, annotations: [], logs };
      });
      await store.createMany('activations', batch);
      if (start === 1) console.log('both namespaces have records');
      if (start % 10 === 0) for await (const removed of store.expire(start - 5)) void removed;
    }
  };
  const entities = async () => {
    for (let number = 0; ; number++) {
      const document = { _id: 'guest/a' + number, namespace: 'guest', updated: number, exec: {}, annotations: ['y'.repeat(500)] };
      const first = await store.put('whisks', document, attachment(2_000_000));
      const second = await store.put('whisks', { ...document, exec: { code: 'longer' }, _rev: first }, attachment(number));
      if (number % 3) await store.delete('whisks', document._id, second);
    }
  };
  void records();
  void entities();`;

describe('the LMDB store', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await makeFolder();
  });

  afterAll(() => removeFolder(folder));

  test('takes an attachment of 48 MB and frees its space', async () => {
    const store = await openLmdbStore(join(folder, 'large'));
    const bytes = Buffer.alloc(48 * 1024 * 1024, 'code');
    let revision: string | undefined;
    for (const name of ['one', 'two', 'three']) {
      const document = { _id: 'guest/a', ...(revision !== undefined && { _rev: revision }) };
      revision = await store.put('whisks', document, [{ name, contentType: 'application/octet-stream', bytes }]);
      const read = await store.getAttachment('whisks', 'guest/a', name);
      expect(Buffer.compare(read.bytes, bytes)).toBe(0);
    }
    await store.close();
  });

  test('a folder in use by another process is refused by name, and free once that process is dead', async () => {
    const used = join(folder, 'used');
    const script = `
      const { openLmdbStore } = await import(${JSON.stringify(import.meta.resolve('@gpuwhisk/common/store/lmdb-store'))});
      const store = await openLmdbStore(${JSON.stringify(used)});
      await store.put('whisks', { _id: 'guest/a', text: 'kept' });
      console.log('open');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(child.stdout, 'data');
      await expect(openLmdbStore(used)).rejects.toThrow(`in use by process ${child.pid}`);
    } finally {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    const store = await openLmdbStore(used);
    expect((await store.get('whisks', 'guest/a')).text).toBe('kept');
    await expect(openLmdbStore(used)).rejects.toBeInstanceOf(StoreOpenError);
    expect((await store.get('whisks', 'guest/a')).text).toBe('kept');
    await store.close();
  });

  test('bytes of namespaces add up to what is stored after a crash amid writes, and with data of an earlier release', async () => {
    const path = join(folder, 'sizes');
    const child = spawn(process.execPath, ['--input-type=module', '-e', writerScript(path)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    await new Promise((done) => setTimeout(done, 500));
    child.kill('SIGKILL');
    await once(child, 'exit');
    const counted = async (): Promise<[Record<string, number>, Record<string, number>]> => {
      const root = openRoot(path);
      const { all = new Map<string, number>() } = countAll(root, () => false) ?? {};
      await root.close();
      const store = await openLmdbStore(path);
      const sizes = [Object.fromEntries(all), Object.fromEntries(store.storedNamespaces())] as const;
      await store.close();
      return [...sizes];
    };
    const [all, stored] = await counted();
    expect(Object.keys(all).sort()).toEqual(['guest', 'other']);
    expect(stored).toEqual(all);
    // An earlier release has stored no counts.
    const root = openRoot(path);
    await openSizes(root).clearAsync();
    await root.close();
    const store = await openLmdbStore(path);
    const more = { _id: 'other/more', namespace: 'other', text: 'x'.repeat(1000) };
    await store.put('whisks', more);
    await until('what was there before is counted', () => (store.storedBytes('guest') ?? 0) > 0);
    await store.close();
    const [now, known] = await counted();
    expect(known).toEqual(now);
    expect(now.guest).toBe(all.guest);
    expect((now.other ?? 0) - (all.other ?? 0)).toBeGreaterThan(1000);
  });

  test('bytes of records that are removed or replaced while they expire are subtracted once', async () => {
    const path = join(folder, 'removed twice');
    const store = await openLmdbStore(path);
    const records = Array.from({ length: 400 }, (_, n) => activation(n, n, { logs: ['x'.repeat(1000)] }));
    await store.createMany('activations', records);
    const read = await Promise.all(records.map(({ _id: id }) => store.get('activations', id)));
    const expire = async (): Promise<void> => {
      for await (const removed of store.expire(1000)) void removed;
    };
    const change = ({ _id: id, _rev: revision }: (typeof read)[number], at: number): Promise<unknown> =>
      at % 4 === 0
        ? store.put('activations', { ...(read[at] as object), _id: id, end: 5000 })
        : store.delete('activations', id, String(revision));
    const changes = await Promise.allSettled([expire(), ...read.map(change)]);
    expect(changes[0]).toMatchObject({ status: 'fulfilled' });
    const done = changes.filter(({ status }) => status === 'fulfilled').length - 1;
    expect([done > 0, done < records.length]).toEqual([true, true]);
    const sizes = Object.fromEntries(store.storedNamespaces());
    await store.close();
    const root = openRoot(path);
    const { all = new Map<string, number>() } = countAll(root, () => false) ?? {};
    await root.close();
    expect(sizes).toEqual({ guest: 0, ...Object.fromEntries(all) });
  });

  test('rows by name that were not in their view yet are found after a crash, and those of earlier releases', async () => {
    const path = join(folder, 'rows');
    const script = `
      const { openLmdbStore } = await import(${JSON.stringify(import.meta.resolve('@gpuwhisk/common/store/lmdb-store'))});
      const store = await openLmdbStore(${JSON.stringify(path)});
      for (let batch = 0; batch < 25; batch++) {
        const documents = Array.from({ length: 50 }, (_, at) => {
          const activationId = String(batch * 50 + at).padStart(32, '0');
          const name = 'a' + (at % 5);
          return { _id: 'guest/' + activationId, namespace: 'guest', name, activationId, start: batch, annotations: [] };
        });
        await store.createMany('activations', documents);
      }
      console.log('stored');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');

    const named = { view: 'activations-by-name', startKey: ['guest/a3'], endKey: ['guest/a3', Infinity] } as const;
    const expectAll = async (): Promise<void> => {
      const store = await openLmdbStore(path);
      expect(await store.count('activations', named)).toBe(250);
      const rows = await store.query('activations', { ...named, descending: true, skip: 5, limit: 12 });
      // Ten records have the same start time; the query skips five of the last ten.
      const starts = [...new Array<number>(5).fill(24), ...new Array<number>(7).fill(23)];
      expect(rows.map(({ key }) => key)).toEqual(starts.map((start) => ['guest/a3', start]));
      expect(rows.every(({ value }) => (value as { name: string }).name === 'a3')).toBe(true);
      await store.close();
    };
    await expectAll();

    const root = openLmdb({ path, noSubdir: false, maxDbs: 32 });
    const view = root.openDB({ name: 'view activations-by-name', keyEncoding: 'binary', encoding: 'binary' });
    const rows = [...view.getRange()].map(({ key }) => Buffer.from(key as Uint8Array));
    expect(rows.length).toBeGreaterThanOrEqual(1000);
    for (const row of rows) {
      const { key, id } = parseRow(row);
      await view.put(row, rowKey(['guest', key[1] as number], id));
    }
    await root.close();
    await expectAll();
  });

  test('a crash while large code is written leaves none of its pieces', async () => {
    const path = join(folder, 'pieces');
    const script = `
      const { openLmdbStore } = await import(${JSON.stringify(import.meta.resolve('@gpuwhisk/common/store/lmdb-store'))});
      const store = await openLmdbStore(${JSON.stringify(path)});
      console.log('open');
      const bytes = Buffer.alloc(40 << 20, 'code');
      await store.put('whisks', { _id: 'guest/a' }, [{ name: 'code', contentType: 'text/plain', bytes }]);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const file = join(path, 'data.mdb');
    while ((await stat(file)).size < 8 << 20) await sleep(1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const piecesOf = async (): Promise<number> => {
      const root = openLmdb({ path, noSubdir: false, maxDbs: 32 });
      const table = root.openDB({ name: 'attachments', keyEncoding: 'binary', encoding: 'binary' });
      const pieces = table.getKeysCount();
      await root.close();
      return pieces;
    };
    expect(await piecesOf()).toBeGreaterThan(0);
    await (await openLmdbStore(path)).close();
    expect(await piecesOf()).toBe(0);
  });

  test('a record with long logs is created in pieces, beside others, and leaves nothing when it expires', async () => {
    const store = await openLmdbStore(join(folder, 'long logs'));
    const logs = Array.from({ length: 30_000 }, (_, n) => `line ${n} "é"`.padEnd(100, '.'));
    const long = activation(1, 1, { logs });
    const [created] = await Promise.all([
      store.createMany('activations', [long]),
      store.createMany('activations', [activation(2, 2)]),
    ]);
    expect(created).toEqual([true]);
    expect(await store.createMany('activations', [long])).toEqual([false]);
    expect((await store.get('activations', long._id)).logs).toEqual(logs);
    expect((await store.list('activations', { limit: 1 }))[0]?.logs).toEqual(logs);
    const text = await store.text('activations', long._id, 'entity', 'guest');
    expect((JSON.parse(Buffer.from(text).toString('utf8')) as { logs: string[] }).logs).toEqual(logs);
    const large = store.storedBytes('guest') ?? 0;
    expect(large).toBeGreaterThan(3_000_000);
    for await (const removed of store.expire(1000)) expect(removed).toBe(2);
    expect(store.storedBytes('guest')).toBe(0);
    await expect(store.get('activations', long._id)).rejects.toBeInstanceOf(NoDocumentError);
    expect(await store.createMany('activations', [activation(1, 3)])).toEqual([true]);
    await store.close();
    const root = openLmdb({ path: join(folder, 'long logs'), noSubdir: false, maxDbs: 32 });
    expect(root.openDB({ name: 'attachments', keyEncoding: 'binary', encoding: 'binary' }).getKeysCount()).toBe(0);
    await root.close();
  });

  test('a backlog of expired records is worked off in steps that grow, and keep the thread free', async () => {
    const store = await openLmdbStore(join(folder, 'backlog'));
    for (let batch = 0; batch < 10; batch += 1) {
      const some = Array.from({ length: 1000 }, (_, n) => activation(batch * 1000 + n, batch * 1000 + n));
      await store.createMany('activations', some);
    }
    const steps: number[] = [];
    const before = performance.eventLoopUtilization();
    for await (const removed of store.expire(1_000_000)) steps.push(removed);
    const { active } = performance.eventLoopUtilization(before);
    expect(steps.reduce((sum, one) => sum + one)).toBe(10_000);
    expect(Math.max(...steps)).toBeGreaterThan(100);
    expect(active / steps.length).toBeLessThan(5);
    await store.close();
  });

  test('many rows are passed over by their number, from records that started since to those that did before', async () => {
    const store = await openLmdbStore(join(folder, 'passed over'));
    const since = 1_000_000;
    const young = Array.from({ length: 1200 }, (_, n) => activation(n, since + n));
    const long = Array.from({ length: 1500 }, (_, n) => activation(5000 + n, n, { end: since + 1 }));
    await store.createMany('activations', [...young, ...long]);
    const newest = [...long, ...young].reverse().map(({ activationId }) => activationId);
    for (const skip of [1100, 1199, 1200, 2300, 2600, 2699, 2700]) {
      const range = { startKey: ['guest', 0], endKey: ['guest', Infinity], descending: true, skip, limit: 3 };
      const query = { view: 'activations', ...range, as: 'value', endedSince: since, reader: 'guest' } as const;
      let list = '';
      for await (const texts of store.texts('activations', query))
        list += `${list && ','}${Buffer.from(texts).toString()}`;
      const ids = (JSON.parse(`[${list}]`) as { activationId: string }[]).map(({ activationId }) => activationId);
      expect([skip, ids]).toEqual([skip, newest.slice(skip, skip + 3)]);
    }
    await store.close();
  });

  const damaged: [string, (bytes: Buffer) => Buffer][] = [
    ['garbage', (bytes) => Buffer.alloc(bytes.length, 'no database')],
    ['zeros', (bytes) => Buffer.alloc(bytes.length)],
    ['a few bytes', (bytes) => bytes.subarray(0, 100)],
    ['half the file', (bytes) => bytes.subarray(0, bytes.length / 2)],
    ['a damaged second page', (bytes) => Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096)])],
  ];

  test.each(damaged)('%s is refused by name', async (what, damage) => {
    const path = join(folder, what);
    const store = await openLmdbStore(path);
    for (let i = 0; i < 20; i++) await store.put('whisks', { _id: `guest/${i}`, text: 'x'.repeat(50_000) });
    await store.close();
    await writeFile(join(path, 'data.mdb'), damage(await readFile(join(path, 'data.mdb'))));
    await expect(openLmdbStore(path)).rejects.toThrow(`the database in '${path}' cannot be opened`);
  });

  test('large documents are listed some at a time, and other work is done between', async () => {
    const store = await openLmdbStore(join(folder, 'listed'));
    const ids = Array.from({ length: 20 }, (_, at) => `large/${String.fromCharCode(97 + at)}`);
    for (const id of ids) await store.put('gpu', { _id: id, text: 'x'.repeat(600_000) });
    let turns = 0;
    let isOver = false;
    const turn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    const listed = await store.list('gpu', { after: 'large/', limit: 15 });
    isOver = true;
    expect(listed.map(({ _id }) => _id)).toEqual(ids.slice(0, 15));
    expect(turns).toBeGreaterThan(10);
    expect((await store.list('gpu', { after: ids[14]!, limit: 15 })).map(({ _id }) => _id)).toEqual(ids.slice(15));
    await store.close();
  });

  test('a folder that cannot be made is refused by name', async () => {
    await writeFile(join(folder, 'file'), 'x');
    await expect(openLmdbStore(join(folder, 'file', 'store'))).rejects.toThrow(join(folder, 'file', 'store'));
  });
});

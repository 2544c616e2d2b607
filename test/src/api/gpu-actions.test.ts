import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { gpuTable } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { actionPath, errorOf, hello, startApi } from './harness.js';
import type { Api, Reply } from './harness.js';

describe('annotation gpu of an action', () => {
  let api: Api;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());
  beforeEach(() => api.state.deleteRow(gpuTable, 'invoker0'));

  const put = (
    name: string,
    gpu: JsonValue | undefined,
    more: object = {},
    query = 'overwrite=true',
  ): Promise<Reply> => {
    const annotations = gpu === undefined ? {} : { annotations: [{ key: 'gpu', value: gpu }] };
    return api.request('PUT', `${actionPath(name)}?${query}`, { body: { ...hello, ...annotations, ...more } });
  };
  const hour = 3_600_000;

  test('is kept as it was written', async () => {
    const reply = await put('kept', { memoryMiB: 2048, sloMs: 100 });
    expect(reply.status).toBe(200);
    const { annotations } = reply.json as { annotations: { key: string; value: unknown }[] };
    expect(annotations).toContainEqual({ key: 'gpu', value: { memoryMiB: 2048, sloMs: 100 } });
  });

  test.each<[string, JsonValue, string]>([
    ['no object', 'yes', "Annotation 'gpu' must be an object."],
    ['a field of the wrong type', { memoryMiB: 1, sloMs: '1' }, "Field 'sloMs' of annotation 'gpu' must be"],
    ['a field out of range', { memoryMiB: 1, mpsPercent: 101 }, "Field 'mpsPercent' of annotation 'gpu' must be"],
    ['more devices than memory is split over', { memoryMiB: 1, spans: 5 }, "Field 'spans' of annotation 'gpu' must be"],
    [
      'whole devices that it spans',
      { memoryMiB: 1, gpus: 2, spans: 2 },
      "must be 1 where 'gpus' is more than 1, as it is 2",
    ],
    ['an unknown field', { memoryMiB: 1, slo: 1 }, "Annotation 'gpu' has no field 'slo'"],
    ['a request over the limit', { memoryMiB: 1, smRequest: 0.5, smLimit: 0.2 }, "Field 'smRequest'"],
  ])('with %s is refused, and nothing is stored', async (_, gpu, message) => {
    const reply = await put('refused', gpu);
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toContain(message);
    expect((await api.request('GET', actionPath('refused'))).status).toBe(404);
  });

  const limitsOf = (reply: Reply): unknown => {
    const { limits } = reply.json as { limits: { timeout: number; memory: number } };
    return [limits.timeout, limits.memory];
  };

  test('gives an action without limits those that frameworks need, in its document as usual', async () => {
    expect(limitsOf(await put('framework', { memoryMiB: 2048 }))).toEqual([300_000, 2048]);
    expect(limitsOf(await put('small', { memoryMiB: 2048 }, { limits: { memory: 300 } }))).toEqual([300_000, 300]);
    expect(limitsOf(await put('plain', undefined))).toEqual([60_000, 256]);
  });

  test('that comes or goes moves limits that are the defaults, and no others', async () => {
    await put('late', undefined);
    expect(limitsOf(await put('late', { memoryMiB: 2048 }))).toEqual([300_000, 2048]);
    expect(limitsOf(await put('late', undefined, { delAnnotations: ['gpu'] }))).toEqual([60_000, 256]);
    await put('chosen', undefined, { limits: { memory: 512, timeout: 1000 } });
    expect(limitsOf(await put('chosen', { memoryMiB: 2048 }))).toEqual([1000, 512]);
    expect(limitsOf(await put('chosen', undefined, { limits: { memory: 400 } }))).toEqual([1000, 400]);
  });

  test('is refused in an update, and the action stays what it was', async () => {
    await put('stays', { memoryMiB: 1 });
    expect((await put('stays', { memoryMiB: -1 })).status).toBe(400);
    const { version } = (await api.request('GET', actionPath('stays'))).json as { version: string };
    expect(version).toBe('0.0.1');
  });

  test('asking for more than the largest device has is refused once devices are known', async () => {
    expect((await put('large', { memoryMiB: 60_000 })).status).toBe(200);
    await setNode(api.state, nodeRow([a100('GPU-0'), a100('GPU-1', { memoryMiB: 24_576, name: 'NVIDIA RTX 3090' })]));
    const reply = await put('larger', { memoryMiB: 38_913 });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toBe(
      "Annotation 'gpu' asks for more than the cluster has: 'memoryMiB' is 38913, and the largest device, NVIDIA A100-SXM4-40GB, can give 38912.",
    );
    expect((await put('fits', { memoryMiB: 38_912 })).status).toBe(200);
    expect(errorOf(await put('pair', { memoryMiB: 1024, gpus: 3 }))).toContain("'gpus' is 3");
  });

  test('counts on the slices that a device will have which is being cut', async () => {
    const row = nodeRow([a100('GPU-0', { mode: 'mig' })]);
    const [status] = row.status;
    status!.cut = { profiles: ['4g.20gb', '3g.20gb'], state: 'cutting' };
    await setNode(api.state, row);
    expect((await put('sliced', { memoryMiB: 18_969 })).status).toBe(200);
    expect(errorOf(await put('whole', { memoryMiB: 18_970 }))).toContain('can give 18969');
  });

  test('lets an action have more memory and time than others, up to maxima of their own', async () => {
    const large = { limits: { memory: 32_768, timeout: 24 * hour } };
    expect((await put('long', { memoryMiB: 1 }, large, '')).status).toBe(200);
    expect(errorOf(await put('longer', { memoryMiB: 1 }, { limits: { timeout: 24 * hour + 1 } }))).toMatch(
      /^duration 86400001 milliseconds exceeds allowed threshold of 86400000/,
    );
    expect(errorOf(await put('wider', { memoryMiB: 1 }, { limits: { memory: 32_769 } }))).toMatch(
      /^memory size 32769 MB exceeds allowed threshold of 32768 MB/,
    );
    for (const query of ['', 'overwrite=true']) {
      expect(errorOf(await put('none', undefined, large, query))).toMatch(/exceeds allowed threshold of 512 MB/);
    }
  });

  test('is kept by updates that do not name it, and its maxima with it', async () => {
    await put('updated', { memoryMiB: 1 });
    expect((await put('updated', undefined, { limits: { timeout: hour } })).status).toBe(200);
    const removing = await put('updated', undefined, { delAnnotations: ['gpu'] });
    expect(removing.status).toBe(400);
    expect(errorOf(removing)).toMatch(/^duration 3600000 milliseconds exceeds/);
    const both = await put('updated', undefined, { delAnnotations: ['gpu'], limits: { timeout: 1000 } });
    expect(both.status).toBe(200);
    expect(errorOf(await put('updated', undefined, { limits: { timeout: hour } }))).toMatch(/exceeds/);
  });

  test('means nothing on a sequence', async () => {
    await put('part', undefined);
    const exec = { kind: 'sequence', components: ['/_/part'] };
    expect((await put('line', 'whatever', { exec })).status).toBe(200);
  });
});

import { describe, expect, test } from '@jest/globals';
import type { JsonValue } from '../json.js';
import { gpuNeedOf, readGpuAnnotation } from './gpu-annotation.js';

const with2GiB = (fields: Record<string, JsonValue>): JsonValue => ({ memoryMiB: 2048, ...fields });

describe('annotation gpu', () => {
  test('needs its memory only, and has defaults', () => {
    expect(readGpuAnnotation({ memoryMiB: 2048 })).toEqual({
      memoryMiB: 2048,
      class: 'inference',
      batch: 1,
      gpus: 1,
      isolation: 'namespace',
    });
  });

  test('is read with all that it may have', () => {
    const annotation = {
      memoryMiB: 512,
      sloMs: 12.5,
      class: 'training',
      batch: 8,
      gpus: 2,
      model: 'resnet50',
      features: { parameters: 25.6e6, layers: 50 },
      mpsPercent: 50,
      smRequest: 0.2,
      smLimit: 0.5,
      sample: { url: 'a.png' },
      isolation: 'exclusive',
    };
    expect(readGpuAnnotation(annotation)).toEqual(annotation);
  });

  test.each(['classify', 'vision/classify', '/alice/classify', '/_/vision/classify'])(
    'takes the name of an action as sample: %s',
    (sample) => expect(readGpuAnnotation(with2GiB({ sample })).sample).toBe(sample),
  );

  test('what rides with activations leaves out what only profiling needs', () => {
    const annotation = readGpuAnnotation(with2GiB({ sample: {}, features: { smUtil: 2 }, sloMs: 100 }));
    expect(gpuNeedOf(annotation, 500)).toEqual({ ...readGpuAnnotation(with2GiB({ sloMs: 100 })), timeoutMs: 500 });
  });

  test('all features ride, but for parts of a GPU that cannot be', () => {
    const annotation = readGpuAnnotation(with2GiB({ features: { smUtil: 0.4, dramUtil: 7, l2Util: 0, layers: 3 } }));
    expect(gpuNeedOf(annotation, 500).features).toEqual({ smUtil: 0.4, l2Util: 0, layers: 3 });
  });

  test.each<[string, JsonValue, RegExp]>([
    ['a list', [], /must be an object/],
    ['a text', '2 GiB', /must be an object/],
    ['no memory', {}, /'memoryMiB' .* found nothing/],
    ['memory as a text', { memoryMiB: '2048' }, /'memoryMiB' .* found "2048"/],
    ['no memory at all', { memoryMiB: 0 }, /'memoryMiB'/],
    ['parts of a MiB', { memoryMiB: 1.5 }, /'memoryMiB'/],
    ['an unknown field', with2GiB({ memory: 1 }), /no field 'memory'; it has memoryMiB, sloMs/],
    ['a field of Object', with2GiB({ constructor: 1 }), /no field 'constructor'/],
    ['no time at all', with2GiB({ sloMs: 0 }), /'sloMs'/],
    ['a negative time', with2GiB({ sloMs: -5 }), /'sloMs'/],
    ['more than a day', with2GiB({ sloMs: 86_400_001 }), /'sloMs'/],
    ['another class', with2GiB({ class: 'batch' }), /'class' .* one of 'inference', 'training', 'compute'/],
    ['a batch of nothing', with2GiB({ batch: 0 }), /'batch'/],
    ['no GPU', with2GiB({ gpus: 0 }), /'gpus'/],
    ['too many GPUs', with2GiB({ gpus: 17 }), /'gpus' .* 1 to 16/],
    ['a model without a name', with2GiB({ model: '' }), /'model'/],
    ['features in a list', with2GiB({ features: [1] }), /'features'/],
    ['a feature that is no number', with2GiB({ features: { layers: 'many' } }), /'features'/],
    ['more than all SMs', with2GiB({ mpsPercent: 101 }), /'mpsPercent' .* 1 to 100/],
    ['a share of nothing', with2GiB({ smRequest: 0 }), /'smRequest'/],
    ['a share above one', with2GiB({ smLimit: 1.01 }), /'smLimit'/],
    ['a request over the limit', with2GiB({ smRequest: 0.5, smLimit: 0.4 }), /'smRequest' .* 'smLimit', 0.4/],
    ['a limit over the percentage', with2GiB({ smLimit: 0.5, mpsPercent: 40 }), /'smLimit' .* 'mpsPercent', 40 %/],
    [
      'a request over the percentage',
      with2GiB({ smRequest: 0.5, mpsPercent: 40 }),
      /'smRequest' .* 'mpsPercent', 40 %/,
    ],
    ['a sample that is a number', with2GiB({ sample: 5 }), /'sample'/],
    ['a sample that names no action', with2GiB({ sample: 'a/b/c' }), /'sample'/],
    ['a sample with an empty name', with2GiB({ sample: '' }), /'sample'/],
    ['another isolation', with2GiB({ isolation: 'none' }), /'isolation'/],
  ])('%s is refused', (_, value, message) => {
    expect(() => readGpuAnnotation(value)).toThrow(message);
  });
});

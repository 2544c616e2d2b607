import { describe, expect, test } from '@jest/globals';
import { ConfigError } from './config.js';
import { kindsOf, parseManifest, resolveKind } from './runtimes.js';

const image = { prefix: 'openwhisk', name: 'n', tag: 't' };
const parse = (runtimes: object, more: object = {}) =>
  parseManifest(JSON.stringify({ runtimes, ...more }), 'runtimes.json');

describe('a runtimes manifest', () => {
  test("of OpenWhisk's, older names included, with its defaults", () => {
    const stemCells = [
      { count: 2, memory: '256 MB' },
      {
        initialCount: 1,
        memory: '512 MB',
        reactive: { minCount: 1, maxCount: 4, ttl: '2 minutes', threshold: 1, increment: 1 },
      },
    ];
    const given = { kind: 'swift:5.3', image: { ...image, registry: 'r' }, stemCells };
    const manifest = parse({ swift: [given] }, { blackboxes: [image], description: ['of its authors'] });
    expect(manifest.runtimes.swift).toEqual([
      {
        kind: 'swift:5.3',
        default: true,
        deprecated: false,
        image,
        requireMain: false,
        sentinelledLogs: true,
        stemCells: [{ initialCount: 2, memory: '256 MB' }, stemCells[1]],
      },
    ]);
    expect(manifest.blackboxes).toEqual([image]);
  });

  test('with a command in place of an image', () => {
    const manifest = parse({ x: [{ kind: 'x:1', command: ['/opt/x', 'serve'] }] });
    expect(manifest.runtimes.x?.[0]).toMatchObject({ image: { prefix: 'command', name: 'x-1', tag: 'latest' } });
    expect(kindsOf(manifest)).toEqual(['x:1']);
    expect(resolveKind(manifest, 'x:default')?.kind).toBe('x:1');
  });

  const two = (first: object, second: object): object => ({
    x: [
      { kind: 'x:1', image, ...first },
      { kind: 'x:2', image, ...second },
    ],
  });
  test.each([
    ['no default', two({}, {}), "family 'x' has 0 defaults instead of one"],
    ['two defaults', two({ default: true }, { default: true }), "family 'x' has 2 defaults instead of one"],
    ['the same kind twice', two({ default: true }, { kind: 'x:1' }), "'x:1' is listed twice"],
    ['a kind of another family', two({ default: true }, { kind: 'y:1' }), "'y:1' is in family 'x'"],
    ['a kind without a version', { x: [{ kind: 'x', image }] }, 'runtimes.x.0.kind: must be such as family:1'],
    ['neither image nor command', { x: [{ kind: 'x:1' }] }, 'runtimes.x.0: needs an image or a command'],
    ['no list', { x: {} }, 'runtimes.x: '],
    ['a negative count', { x: [{ kind: 'x:1', image, stemCells: [{ count: -1, memory: '1 MB' }] }] }, 'count: '],
    [
      'minCount above maxCount',
      {
        x: [
          {
            kind: 'x:1',
            image,
            stemCells: [
              { memory: '1 MB', reactive: { minCount: 2, maxCount: 1, ttl: '1 minute', threshold: 1, increment: 1 } },
            ],
          },
        ],
      },
      'minCount is more than maxCount',
    ],
  ])('with %s is refused', (_, runtimes, reason) => {
    expect(() => parse(runtimes)).toThrow(ConfigError);
    expect(() => parse(runtimes)).toThrow(reason);
    expect(() => parse(runtimes)).toThrow("The runtimes manifest 'runtimes.json' is not valid: ");
  });

  test('that is no JSON is refused', () => {
    expect(() => parseManifest('{', 'f')).toThrow("The runtimes manifest 'f' is not valid: ");
  });
});

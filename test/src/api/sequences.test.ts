// Putting sequences: the cases of OpenWhisk's SequenceApiTests.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { actionPath, alice, bob, errorOf, hello, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

let api: Api;
let serial = 0;
/** Makes names that only the current test uses. */
let name: (base: string) => string;

beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());
beforeEach(() => {
  const own = ++serial;
  name = (base) => `${base}${own}`;
});

const sequence = (...components: string[]): object => ({ exec: { kind: 'sequence', components } });

function put(action: string, body: object, as?: Account): Promise<Reply> {
  return api.request('PUT', `/api/v1/namespaces/_/actions/${action}?overwrite=true`, { body, ...(as && { as }) });
}

async function putAll(...actions: string[]): Promise<void> {
  for (const action of actions) expect((await put(action, hello)).status).toBe(200);
}

const refusal = async (reply: Promise<Reply>): Promise<[number, string]> => {
  const answered = await reply;
  return [answered.status, errorOf(answered)];
};

const own = (...actions: string[]): string[] => actions.map((action) => `/alice/${action}`);

test('the default namespace becomes the caller; parameters are the components, whatever is given', async () => {
  await putAll(name('a'));
  const body = { ...sequence(`/_/${name('a')}`, `/alice/${name('a')}`), parameters: [{ key: 'x', value: 1 }] };
  const components = own(name('a'), name('a'));
  const shown = {
    exec: { kind: 'sequence', components },
    parameters: [{ key: '_actions', value: components }],
    annotations: [
      { key: 'provide-api-key', value: false },
      { key: 'exec', value: 'sequence' },
    ],
    limits: { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 },
  };
  expect((await put(name('s'), body)).json).toMatchObject(shown);
  expect((await api.request('GET', actionPath(name('s')))).json).toMatchObject(shown);
});

test('code becomes a sequence and a sequence code', async () => {
  await putAll(name('a'));
  await put(name('s'), { ...hello, parameters: [{ key: 'x', value: 1 }] });
  const [component = ''] = own(name('a'));
  expect((await put(name('s'), sequence(component))).json).toMatchObject({
    exec: { kind: 'sequence' },
    parameters: [{ key: '_actions', value: [component] }],
  });
  // A PUT without exec ignores given parameters.
  expect((await put(name('s'), { parameters: [{ key: 'y', value: 2 }] })).json).toMatchObject({
    parameters: [{ key: '_actions', value: [component] }],
  });
  expect((await put(name('s'), hello)).json).toMatchObject({ exec: { kind: 'nodejs:20' }, parameters: [] });
});

test('more actions than allowed, also by way of other sequences', async () => {
  await putAll(name('a'));
  const times = (count: number, action: string): string[] => Array.from({ length: count }, () => `/_/${action}`);
  const tooLong = [400, 'Too many actions in the sequence. (setting: limits.maxSequenceLength)'];
  expect(await refusal(put(name('s'), sequence(...times(51, name('a')))))).toEqual(tooLong);
  expect((await put(name('half'), sequence(...times(25, name('a'))))).status).toBe(200);
  expect((await put(name('s'), sequence(...times(2, name('half'))))).status).toBe(200);
  expect(await refusal(put(name('s'), sequence(...times(3, name('half')))))).toEqual(tooLong);
  expect((await put(name('s'), sequence(...times(50, name('a'))))).status).toBe(200);
});

test('no component, and one that is not there', async () => {
  expect(await refusal(put(name('s'), sequence()))).toEqual([400, 'No component specified for the sequence.']);
  const missing = [400, 'Sequence component does not exist.'];
  for (const component of ['/_/nowhere', '/_/a/b/c']) {
    expect(await refusal(put(name('s'), sequence(component)))).toEqual(missing);
  }
  // The right to read a component's package is checked before the component is.
  expect(await refusal(put(name('s'), sequence('/_/nopackage/a')))).toEqual([
    404,
    'The requested resource does not exist.',
  ]);
  expect((await api.request('GET', actionPath(name('s')))).status).toBe(404);
  await putAll(name('a'));
  await put(name('s'), sequence(`/_/${name('a')}`));
  expect(await refusal(put(name('s'), sequence()))).toEqual([400, 'No component specified for the sequence.']);
});

test('malformed components', async () => {
  const text = (detail: string): [number, string] => [400, `The request content was malformed:\n${detail}`];
  const short =
    'requirement failed: The fully qualified name of the entity must contain at least the namespace and the name of the entity.';
  expect(await refusal(put(name('s'), sequence('a', 'b')))).toEqual(text(short));
  expect(await refusal(put(name('s'), { exec: { kind: 'sequence' } }))).toEqual(
    text("'components' must be defined for sequence kind"),
  );
  expect(await refusal(put(name('s'), { exec: { kind: 'sequence', components: 'a' } }))).toEqual(
    text("'components' must be an array"),
  );
});

test('a sequence that refers to itself', async () => {
  await putAll(name('a'));
  const [a = '', s = ''] = own(name('a'), name('s'));
  const cyclic = [400, 'Sequence may not refer to itself.'];
  expect(await refusal(put(name('s'), sequence(s)))).toEqual(cyclic);
  expect(await refusal(put(name('s'), sequence(a, s, a)))).toEqual(cyclic);
  expect(await refusal(put(name('s'), sequence(`/_/${name('s')}`)))).toEqual(cyclic);
  await put(name('s'), sequence(a));
  expect(await refusal(put(name('s'), sequence(a, s)))).toEqual(cyclic);
  expect(await refusal(put(name('a'), sequence(a)))).toEqual(cyclic);
});

test('cycles through other sequences, and updates without', async () => {
  const [a = '', b = '', x = '', y = '', z = '', s = ''] = own(...['a', 'b', 'x', 'y', 'z', 's'].map(name));
  await putAll(name('a'), name('b'), name('z'));
  await put(name('y'), sequence(a));
  await put(name('x'), sequence(b, z));
  expect((await put(name('s'), sequence(a, x, y))).status).toBe(200);
  const cyclic = [400, 'Sequence may not refer to itself.'];
  expect(await refusal(put(name('z'), sequence(s)))).toEqual(cyclic);
  expect(await refusal(put(name('s'), sequence(a, s, b)))).toEqual(cyclic);
  expect((await put(name('z'), sequence(y))).status).toBe(200);
  expect((await put(name('s'), sequence(a, x, y, a, b))).status).toBe(200);
});

test('components in packages and bindings; a cycle through a binding', async () => {
  const put200 = async (path: string, body: object): Promise<void> => {
    expect((await api.request('PUT', `/api/v1/namespaces/_/${path}`, { body })).status).toBe(200);
  };
  await put200(`packages/${name('pkg')}`, { publish: true });
  await put200(`packages/${name('bound')}`, { binding: { namespace: '_', name: name('pkg') } });
  await put200(`actions/${name('pkg')}/a`, hello);
  await put200(`actions/${name('s')}`, sequence(`/_/${name('bound')}/a`));
  await put200(`actions/${name('pkg')}/s`, sequence(`/_/${name('pkg')}/a`));
  const cyclic = sequence(`/_/${name('pkg')}/a`, `/_/${name('bound')}/s`);
  expect(await refusal(put(`${name('pkg')}/s`, cyclic))).toEqual([400, 'Sequence may not refer to itself.']);
});

test('components of another namespace: those of a shared package only', async () => {
  const asBob = (path: string, body: object): Promise<Reply> =>
    api.request('PUT', `/api/v1/namespaces/_/${path}`, { body, as: bob });
  await asBob(`packages/${name('open')}`, { publish: true });
  await asBob(`packages/${name('shut')}`, { publish: false });
  for (const where of [name('open'), name('shut')]) await asBob(`actions/${where}/a`, hello);
  await asBob(`actions/${name('a')}`, hello);
  const open = `/bob/${name('open')}/a`;
  const shut = `/bob/${name('shut')}/a`;
  const plain = `/bob/${name('a')}`;
  expect((await put(name('s'), sequence(open), alice)).status).toBe(200);
  const notAuthorized = (...refused: string[]): [number, string] => [
    403,
    `The supplied authentication is not authorized to access '${refused.join(', ')}'.`,
  ];
  const other = `/bob/${name('0')}`;
  expect(await refusal(put(name('s'), sequence(plain, open, other, plain), alice))).toEqual(
    notAuthorized(other.slice(1), plain.slice(1)),
  );
  // For an action in a package, the refusal names the package.
  const ofShut = notAuthorized(`bob/${name('shut')}`);
  expect(await refusal(put(name('s'), sequence(open, shut, plain), alice))).toEqual(ofShut);
});

// Functions from creation to deletion, through OpenWhisk's own JavaScript client.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import AdmZip from 'adm-zip';
import openwhisk from 'openwhisk';
import { hasPython, kinds } from '../support/machine.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

let platform: RunningPlatform;
let client: openwhisk.Client;
const python = hasPython ? test : test.skip;

beforeAll(async () => {
  platform = await startPlatform();
  client = openwhisk({ apihost: platform.url, api_key: platform.auth });
});
afterAll(() => platform.stop());

/** The record; a blocking answer comes shortly before it. */
async function recordOf(activationId: string): Promise<openwhisk.Activation<openwhisk.Dict>> {
  let record: openwhisk.Activation<openwhisk.Dict> | undefined;
  await until(`activation ${activationId} is recorded`, async () => {
    record = await client.activations.get(activationId).catch((error: { statusCode?: number }) => {
      if (error.statusCode !== 404) throw error;
      return undefined;
    });
    return record !== undefined;
  });
  return record as openwhisk.Activation<openwhisk.Dict>;
}

const greeters: Record<string, string> = {
  'nodejs:default': `function main({ name, greeting = 'Hello' }) {
    console.log('greeting', name);
    if (name === 'nobody') return { error: 'nobody is there' };
    return { text: greeting + ', ' + name + '!' };
  }`,
  'python:default': `def main(args):
  print("greeting", args.get("name"))
  if args.get("name") == "nobody":
    return {"error": "nobody is there"}
  return {"text": "%s, %s!" % (args.get("greeting", "Hello"), args["name"])}`,
};

describe.each(kinds.map(String))('%s', (kind) => {
  const name = `greet-${kind.split(':')[0]}`;

  test('is created, and not twice', async () => {
    const action = greeters[kind] ?? '';
    const created = await client.actions.create({ name, action, kind, annotations: { about: 'greets' } });
    expect(created).toMatchObject({ name, namespace: 'guest', version: '0.0.1', publish: false });
    expect(created.exec).toMatchObject({ code: action, binary: false });
    expect(created.annotations).toEqual(
      expect.arrayContaining([
        { key: 'about', value: 'greets' },
        { key: 'exec', value: created.exec.kind },
        { key: 'provide-api-key', value: false },
      ]),
    );
    await expect(client.actions.create({ name, action, kind })).rejects.toMatchObject({
      statusCode: 409,
      message: `PUT ${platform.url}/api/v1/namespaces/_/actions/${name} Returned HTTP 409 (Conflict) --> "resource already exists"`,
    });
  });

  test('is got and listed', async () => {
    const got = await client.actions.get(name);
    expect(got).toMatchObject({ name, exec: { code: greeters[kind] }, limits: { timeout: 60_000, memory: 256 } });
    expect((await client.actions.list()).map((row) => row.name)).toContain(name);
    expect(await client.actions.list({ limit: 1, skip: 100 })).toEqual([]);
    expect(await client.actions.list({ count: true })).toEqual({ actions: 1 });
  });

  test('is invoked: blocking, for the result alone, and without waiting', async () => {
    const whole = await client.actions.invoke({ name, blocking: true, params: { name: 'Ada' } });
    expect(whole).toMatchObject({
      name,
      namespace: 'guest',
      subject: 'guest',
      response: { status: 'success', success: true, result: { text: 'Hello, Ada!' } },
    });
    expect(await client.actions.invoke({ name, blocking: true, result: true, params: { name: 'Ada' } })).toEqual({
      text: 'Hello, Ada!',
    });
    const { activationId } = await client.actions.invoke({ name, params: { name: 'Grace' } });
    expect(await recordOf(activationId)).toMatchObject({
      response: { success: true, result: { text: 'Hello, Grace!' } },
      logs: [expect.stringMatching(/ stdout: greeting Grace$/)],
    });
    expect(await client.activations.logs({ name: activationId })).toEqual({
      logs: [expect.stringMatching(/ stdout: greeting Grace$/)],
    });
    expect(await client.activations.result({ name: activationId })).toMatchObject({
      success: true,
      status: 'success',
      result: { text: 'Hello, Grace!' },
    });
  });

  test('its activations are listed, newest first', async () => {
    const since = Date.now();
    const { activationId } = await client.actions.invoke({ name, blocking: true, params: { name: 'Emmy' } });
    await recordOf(activationId);
    expect(await client.activations.list({ name, since })).toMatchObject([
      { activationId, name, version: '0.0.1', statusCode: 0, duration: expect.any(Number) },
    ]);
    const all = await client.activations.list({ name });
    expect(all[0]?.activationId).toBe(activationId);
    expect(all).toHaveLength(4);
    expect(await client.activations.list({ name, since, docs: true })).toMatchObject([
      { activationId, response: { result: { text: 'Hello, Emmy!' } }, logs: [expect.any(String)] },
    ]);
    expect(await client.activations.list({ name, count: true })).toEqual({ activations: 4 });
  });

  test('is updated: parameters, limits and annotations, the code kept', async () => {
    const updated = await client.actions.update({
      name,
      params: { greeting: 'Servus', name: 'stranger' },
      limits: { timeout: 5000, memory: 128 },
      annotations: { author: 'us' },
    });
    expect(updated).toMatchObject({ version: '0.0.2', limits: { timeout: 5000, memory: 128, logs: 10 } });
    expect(updated.annotations).toEqual(
      expect.arrayContaining([
        { key: 'about', value: 'greets' },
        { key: 'author', value: 'us' },
      ]),
    );
    expect(await client.actions.invoke({ name, blocking: true, result: true })).toEqual({ text: 'Servus, stranger!' });
    expect(await client.actions.invoke({ name, blocking: true, result: true, params: { name: 'Ada' } })).toEqual({
      text: 'Servus, Ada!',
    });
  });

  test('its own error reaches the caller', async () => {
    const failed = client.actions.invoke({ name, blocking: true, params: { name: 'nobody' } });
    await expect(failed).rejects.toMatchObject({
      statusCode: 502,
      message: expect.stringContaining('Returned HTTP 502 (Bad Gateway) --> "nobody is there"'),
      error: { response: { status: 'application error', success: false, result: { error: 'nobody is there' } } },
    });
  });

  test('is deleted', async () => {
    expect(await client.actions.delete(name)).toMatchObject({ name, version: '0.0.2' });
    await expect(client.actions.get(name)).rejects.toMatchObject({
      statusCode: 404,
      message: expect.stringContaining('--> "The requested resource does not exist."'),
    });
    await expect(client.actions.invoke({ name, blocking: true })).rejects.toMatchObject({ statusCode: 404 });
  });
});

test('several at a time', async () => {
  const action = 'function main() { return {}; }';
  for (const name of ['one', 'two']) await client.actions.create({ name, action });
  expect((await client.actions.get(['one', 'two'])).map(({ name }) => name)).toEqual(['one', 'two']);
  const started = await client.actions.invoke(['one', { name: 'two', blocking: false }]);
  for (const { activationId } of started) expect((await recordOf(activationId)).response?.success).toBe(true);
  await client.actions.delete(['one', 'two']);
});

test('a zip with its own packages, Node.js', async () => {
  const zip = new AdmZip();
  zip.addFile('package.json', Buffer.from('{ "main": "lib/start.js", "dependencies": { "shout": "1" } }'));
  zip.addFile('lib/start.js', Buffer.from(`exports.main = ({ text }) => ({ text: require('shout')(text) });`));
  zip.addFile('node_modules/shout/package.json', Buffer.from('{ "name": "shout", "main": "shout.js" }'));
  zip.addFile('node_modules/shout/shout.js', Buffer.from('module.exports = (text) => text.toUpperCase() + "!";'));
  const action = zip.toBuffer();
  const created = await client.actions.create({ name: 'shout', action, kind: 'nodejs:default' });
  expect(created.exec).toMatchObject({ binary: true });
  expect(await client.actions.invoke({ name: 'shout', blocking: true, result: true, params: { text: 'hey' } })).toEqual(
    {
      text: 'HEY!',
    },
  );
  expect((await client.actions.get('shout')).exec).toMatchObject({ binary: true, code: action.toString('base64') });
});

python('a zip with its own packages, Python', async () => {
  const zip = new AdmZip();
  zip.addFile(
    '__main__.py',
    Buffer.from('from shout import shout\ndef main(args):\n  return {"text": shout(args["text"])}\n'),
  );
  zip.addFile('shout/__init__.py', Buffer.from('from .voice import shout\n'));
  zip.addFile('shout/voice.py', Buffer.from('def shout(text):\n  return text.upper() + "!"\n'));
  await client.actions.create({ name: 'shout-python', action: zip.toBuffer(), kind: 'python:default' });
  expect(
    await client.actions.invoke({ name: 'shout-python', blocking: true, result: true, params: { text: 'hey' } }),
  ).toEqual({ text: 'HEY!' });
});

test('namespaces, and a wrong key', async () => {
  expect(await client.namespaces.list()).toEqual(['guest']);
  const stranger = openwhisk({ apihost: platform.url, api_key: `${platform.auth.slice(0, -1)}?` });
  await expect(stranger.actions.list()).rejects.toMatchObject({
    statusCode: 401,
    message: expect.stringContaining('--> "The supplied authentication is invalid"'),
  });
});

test('what it takes from the environment', async () => {
  const variables = { __OW_API_HOST: platform.url, __OW_API_KEY: platform.auth, __OW_TRANSACTION_ID: 'chosen-by-us' };
  const before = { ...process.env };
  Object.assign(process.env, variables);
  try {
    const configured = openwhisk();
    expect(await configured.namespaces.list()).toEqual(['guest']);
    await expect(configured.actions.get('nothing')).rejects.toMatchObject({ error: { code: 'chosen-by-us' } });
  } finally {
    process.env = before;
  }
});

test('what this version does not serve yet is refused plainly', async () => {
  const refused = client.actions.create({
    name: 'pair',
    action: { exec: { kind: 'sequence', components: ['/_/a', '/_/b'] } },
  });
  await expect(refused).rejects.toMatchObject({ statusCode: 400 });
});

// Web actions in real sandboxes, called as browsers and other programs call them.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { kinds } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

let platform: RunningPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

/** Serves a page, a picture, a redirect and an error, and echoes other requests. */
const sites: Record<string, string> = {
  'nodejs:default': `const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0xff]).toString('base64');
    function main(args) {
      switch (args.__ow_path) {
        case '/page': return { body: '<h1>grüß ' + args.name + '</h1>', headers: { 'set-cookie': ['a=b', 'c=d'] } };
        case '/picture': return { headers: { 'Content-Type': 'image/png' }, body: png };
        case '/elsewhere': return { statusCode: 302, headers: { location: 'http://openwhisk.org' } };
        case '/teapot': return { error: { statusCode: 418, body: { reason: 'a teapot' } } };
        case '/split': return { headers: { 'x-a': 'b\\r\\nset-cookie: c=d' }, body: 'x' };
        case '/crash': process.exit(1);
        default: return { body: args };
      }
    }`,
  'python:default': `import base64, os
png = base64.b64encode(bytes([0x89, 0x50, 0x4E, 0x47, 0, 0xFF])).decode()
def main(args):
  path = args["__ow_path"]
  if path == "/page":
    return {"body": "<h1>grüß " + args["name"] + "</h1>", "headers": {"set-cookie": ["a=b", "c=d"]}}
  if path == "/picture":
    return {"headers": {"Content-Type": "image/png"}, "body": png}
  if path == "/elsewhere":
    return {"statusCode": 302, "headers": {"location": "http://openwhisk.org"}}
  if path == "/teapot":
    return {"error": {"statusCode": 418, "body": {"reason": "a teapot"}}}
  if path == "/split":
    return {"headers": {"x-a": "b\\r\\nset-cookie: c=d"}, "body": "x"}
  if path == "/crash":
    os._exit(1)
  return {"body": args}`,
};

describe.each(kinds.map(String))('%s:', (kind) => {
  const name = `site-${kind.split(':')[0]}`;
  const site = (path: string): string => `${platform.url}/api/v1/web/guest/default/${name}${path}`;

  beforeAll(async () => {
    await platform.api.putAction(name, sites[kind] ?? '', { kind, annotations: { 'web-export': true, final: true } });
  });

  test('a page with cookies', async () => {
    const reply = await fetch(site('/page?name=J%C3%BCrgen'));
    expect([reply.status, await reply.text()]).toEqual([200, '<h1>grüß Jürgen</h1>']);
    expect(reply.headers.get('content-type')).toBe('text/html; charset=UTF-8');
    expect(reply.headers.getSetCookie()).toEqual(['a=b', 'c=d']);
    const record = await platform.api.record(reply.headers.get('x-openwhisk-activation-id') ?? undefined);
    expect(record).toMatchObject({ namespace: 'guest', name, response: { success: true } });
  });

  test('a picture', async () => {
    const reply = await fetch(site('/picture'));
    expect(reply.headers.get('content-type')).toBe('image/png');
    expect([...new Uint8Array(await reply.arrayBuffer())]).toEqual([0x89, 0x50, 0x4e, 0x47, 0, 0xff]);
  });

  test('a redirect', async () => {
    const reply = await fetch(site('/elsewhere'), { redirect: 'manual' });
    expect([reply.status, reply.headers.get('location')]).toEqual([302, 'http://openwhisk.org']);
  });

  test('an error of its own', async () => {
    const reply = await fetch(site('.http/teapot'));
    expect([reply.status, await reply.json()]).toEqual([418, { reason: 'a teapot' }]);
  });

  test('arguments of all sorts', async () => {
    const ask = async (path: string, init: RequestInit): Promise<JsonObject> =>
      (await (await fetch(site(path), init)).json()) as JsonObject;
    expect(
      await ask('/x/%2f?q=1', { method: 'PUT', body: '{"b":[2]}', headers: { 'content-type': 'application/json' } }),
    ).toMatchObject({
      __ow_method: 'put',
      __ow_path: '/x/%2f',
      q: '1',
      b: [2],
      __ow_headers: { 'content-type': 'application/json' },
    });
    expect(await ask('', { method: 'POST', body: new URLSearchParams({ f: 'g h' }) })).toMatchObject({ f: 'g h' });
    const bytes = await ask('', {
      method: 'POST',
      body: new Uint8Array([0, 255]),
      headers: { 'content-type': 'image/png' },
    });
    expect(bytes.__ow_body).toBe('AP8=');
  });

  test('an answer that would split is none', async () => {
    const reply = await fetch(site('/split'));
    expect([reply.status, await reply.json()]).toMatchObject([400, { error: "Response is not valid 'message/http'." }]);
    expect(reply.headers.getSetCookie()).toEqual([]);
  });

  test('a crash shows nothing of itself, and the next call works', async () => {
    const reply = await fetch(site('/crash'));
    expect([reply.status, await reply.json()]).toMatchObject([
      400,
      { error: 'There was an error processing your request.' },
    ]);
    expect((await fetch(site('/picture'))).status).toBe(200);
  });
});

describe('what is made of several actions', () => {
  const web = { 'web-export': true };
  const ask = async (name: string, query: string): Promise<[number, string]> => {
    const reply = await fetch(`${platform.url}/api/v1/web/guest/default/${name}?${query}`);
    return [reply.status, await reply.text()];
  };

  beforeAll(async () => {
    await platform.api.putAction('greet', 'function main({ name }) { return { text: `hello ${name}` }; }');
    await platform.api.putAction('page', 'function main({ text }) { return { body: `<p>${text}</p>` }; }');
    await platform.api.putAction('refuse', "function main() { return { error: { statusCode: 403, body: 'no' } }; }");
    const sequence = (name: string, components: string[]): Promise<{ status: number }> =>
      platform.api.request('PUT', `_/actions/${name}`, {
        exec: { kind: 'sequence', components },
        annotations: [{ key: 'web-export', value: true }],
      });
    expect((await sequence('site', ['/_/greet', '/_/page'])).status).toBe(200);
    expect((await sequence('closed', ['/_/greet', '/_/refuse', '/_/page'])).status).toBe(200);
    const conductor = `function main({ step = 0, ...params }) {
      const action = ['/_/greet', '/_/page'][step];
      return action === undefined ? { params } : { action, params, state: { step: step + 1 } };
    }`;
    await platform.api.putAction('composed', conductor, { annotations: { ...web, conductor: true } });
  });

  test('a sequence', async () => {
    expect(await ask('site', 'name=world')).toEqual([200, '<p>hello world</p>']);
  });

  test('a sequence that ends early', async () => {
    expect(await ask('closed', 'name=world')).toEqual([403, 'no']);
  });

  test('a composition', async () => {
    expect(await ask('composed', 'name=world')).toEqual([200, '<p>hello world</p>']);
  });
});

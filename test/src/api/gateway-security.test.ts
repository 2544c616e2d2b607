import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import jwt from 'jsonwebtoken';
import type { JsonObject } from '@gpuwhisk/common/json';
import { alice, bob, errorOf } from './harness.js';
import { startGatewayApi, swaggerOf } from './gateway-harness.js';
import type { GatewayApi } from './gateway-harness.js';

const secret = 'a secret of thirty-two characters or more';
const { publicKey, privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const elliptic = generateKeyPairSync('ec', {
  namedCurve: 'prime256v1',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const shortKey = generateKeyPairSync('rsa', {
  modulusLength: 1024,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const issuer = 'https://accounts.test';
const nowSeconds = 1_800_000_000;
let now = nowSeconds * 1000;

let gateway: GatewayApi;
beforeAll(async () => {
  const { systemClock } = await import('@gpuwhisk/common/system/clock');
  gateway = await startGatewayApi({
    clock: { ...systemClock, now: () => now },
    config: { gatewayIssuers: { configured: { issuer, algorithms: ['HS256'], secret } } },
  });
  await gateway.put('hello');
});
afterAll(() => gateway.close());

/** An API at a base path with one path, `/a`. */
async function api(basePath: string, more: JsonObject): Promise<void> {
  const { status, text } = await gateway.importSwagger(swaggerOf(basePath, ['/a'], more));
  expect([status, text]).toEqual([200, expect.any(String)]);
  gateway.result({ body: 'served' });
}
const statusOf = async (basePath: string, headers: Record<string, string> = {}, query = ''): Promise<number> =>
  (await gateway.visit('GET', `${basePath}/a${query}`, { headers })).status;
const apiKey = (name: string, where = 'header'): JsonObject => ({ type: 'apiKey', name, in: where });
const subscribe = (basepath: string, clientId: string, clientSecret?: string) =>
  gateway.manage('createSubscription', {}, { body: { basepath, client_id: clientId, client_secret: clientSecret } });

describe('API keys', () => {
  test('let in who has one of this API, and nobody else', async () => {
    await api('/keys', { securityDefinitions: { client_id: apiKey('X-Api-Key') } });
    await api('/other', { securityDefinitions: { client_id: apiKey('X-Api-Key') } });
    const before = gateway.api.invocations.length;
    const refused = await gateway.visit('GET', '/keys/a');
    expect([refused.status, refused.json]).toEqual([401, { status: 401, message: 'Error: Unauthorized' }]);
    const made = await subscribe('/keys', 'client-one');
    expect([made.status, (made.json as { message: string }).message]).toEqual([
      200,
      expect.stringMatching(/^Subscription 'client-one' created for API '[0-9a-f-]{36}'$/),
    ]);
    await subscribe('/other', 'client-two');
    for (const key of ['', 'client-two', 'CLIENT-ONE', 'client-one ', '__proto__', 'constructor', 'toString']) {
      expect([key, await statusOf('/keys', { 'x-api-key': key })]).toEqual([key, key === 'client-one ' ? 200 : 401]);
    }
    expect(gateway.api.invocations.length).toBe(before + 1);
    expect(await statusOf('/keys', { 'x-api-key': 'client-one' })).toBe(200);
  });

  test('come in the query where the document says so', async () => {
    await api('/query', { securityDefinitions: { key: apiKey('api_key', 'query') } });
    await subscribe('/query', 'client-one');
    expect(await statusOf('/query', {}, '?api_key=client-one')).toBe(200);
    expect(await statusOf('/query', { api_key: 'client-one' })).toBe(401);
  });

  test('with a secret need both, and the secret is not stored', async () => {
    const securityDefinitions = { client_id: apiKey('X-Id'), client_secret: apiKey('X-Secret') };
    await api('/pair', { securityDefinitions });
    await subscribe('/pair', 'client-one', 'the secret of one'.replaceAll(' ', '-'));
    const right = { 'x-id': 'client-one', 'x-secret': 'the-secret-of-one' };
    expect(await statusOf('/pair', right)).toBe(200);
    const reply = await gateway.visit('GET', '/pair/a', { headers: { 'x-id': 'client-one' } });
    expect(reply.json).toEqual({ status: 401, message: 'Error: x-secret required' });
    for (const wrong of [{ 'x-secret': 'the-secret-of-two' }, { 'x-id': 'client-two' }, { 'x-id': '__proto__' }]) {
      const { json } = await gateway.visit('GET', '/pair/a', { headers: { ...right, ...wrong } });
      expect(json).toEqual({ status: 401, message: 'Error: Secret mismatch or not subscribed to this api.' });
    }
    expect(JSON.stringify(await gateway.api.store.get('gpu', 'api/alice/pair'))).not.toContain('the-secret');
    // This API asks for the client id only. A client that has a secret must still send it.
    await api('/pair', { securityDefinitions: { client_id: apiKey('X-Id') } });
    expect(await statusOf('/pair', { 'x-id': 'client-one' })).toBe(401);
  });

  test('are listed, outlive a new document, and are taken away', async () => {
    const document = { securityDefinitions: { client_id: apiKey('X-Api-Key') } };
    await api('/life', document);
    await subscribe('/life', 'client-one');
    await subscribe('/life', 'client-two');
    await api('/life', document);
    const listed = await gateway.manage('getSubscriptions', { basepath: '/life' });
    expect(listed.json).toEqual({ subscriptions: ['client-one', 'client-two'] });
    const query = { basepath: '/life', client_id: 'client-one' };
    expect((await gateway.manage('deleteSubscription', query)).json).toEqual({});
    expect(await statusOf('/life', { 'x-api-key': 'client-one' })).toBe(401);
    expect(await statusOf('/life', { 'x-api-key': 'client-two' })).toBe(200);
    expect(errorOf(await gateway.manage('deleteSubscription', query))).toBe("Subscription doesn't exist");
    await gateway.manage('deleteApi', { basepath: '/life' });
    await api('/life', document);
    expect(await statusOf('/life', { 'x-api-key': 'client-two' })).toBe(401);
  });

  test("are the owner's to give", async () => {
    await api('/owned', { securityDefinitions: { client_id: apiKey('X-Api-Key') } });
    const body = { basepath: '/owned', client_id: 'client-one' };
    const reply = await gateway.manage('createSubscription', {}, { as: bob, body });
    expect([reply.status, errorOf(reply)]).toEqual([502, "API '/owned' does not exist."]);
    for (const bad of ['short', 'with space in it', 'x'.repeat(257), 'clé-secrète', '']) {
      expect(errorOf(await subscribe('/owned', bad))).toBe('client_id must have 8 to 256 visible ASCII characters.');
    }
  });
});

type Claims = Record<string, unknown>;
const claims = (more: Claims = {}): Claims => ({ iss: issuer, aud: 'club', exp: nowSeconds + 60, ...more });
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
const sign = (payload: Claims, key: string, algorithm: jwt.Algorithm): string => jwt.sign(payload, key, { algorithm });

describe('tokens', () => {
  const withSecret = { issuer, audience: 'club', algorithms: ['HS256'], secret };
  const withKey = { issuer, audience: 'club', algorithms: ['RS256'], publicKey };
  const oauth2 = (settings?: JsonObject): JsonObject => ({
    securityDefinitions: { configured: { type: 'oauth2', ...(settings && { 'x-gateway-jwt': settings }) } },
  });
  beforeAll(async () => {
    await api('/secret', oauth2(withSecret));
    await api('/public', oauth2(withKey));
    await api('/configured', oauth2());
  });

  test('that are signed by the issuer and valid now let in', async () => {
    await api('/elliptic', oauth2({ issuer, algorithms: ['ES256'], publicKey: elliptic.publicKey }));
    expect(await statusOf('/elliptic', bearer(sign(claims(), elliptic.privateKey, 'ES256')))).toBe(200);
    expect(await statusOf('/secret', bearer(sign(claims(), secret, 'HS256')))).toBe(200);
    expect(await statusOf('/secret', { authorization: sign(claims(), secret, 'HS256') })).toBe(200);
    expect(
      await statusOf('/secret', bearer(sign(claims({ aud: ['x', 'club'], nbf: nowSeconds }), secret, 'HS256'))),
    ).toBe(200);
    expect(await statusOf('/public', bearer(sign(claims(), privateKey, 'RS256')))).toBe(200);
    expect(await statusOf('/configured', bearer(sign(claims({ aud: 'any' }), secret, 'HS256')))).toBe(200);
  });

  const unsigned = [{ alg: 'none' }, claims()].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  const right = sign(claims(), secret, 'HS256');
  test.each<[string, string, string, string]>([
    ['have expired', '/secret', sign(claims({ exp: nowSeconds }), secret, 'HS256'), 'it has expired'],
    ['begin later', '/secret', sign(claims({ nbf: nowSeconds + 1 }), secret, 'HS256'), 'it is not valid yet'],
    ['never end', '/secret', sign({ iss: issuer, aud: 'club' }, secret, 'HS256'), 'it has no time of expiry'],
    ['are from elsewhere', '/secret', sign(claims({ iss: 'x' }), secret, 'HS256'), 'it is from another issuer'],
    ['name no issuer', '/secret', sign({ ...claims(), iss: '' }, secret, 'HS256'), 'it is from another issuer'],
    ['are for others', '/secret', sign(claims({ aud: 'pub' }), secret, 'HS256'), 'it is for another audience'],
    ['are signed with another key', '/secret', sign(claims(), `${secret}!`, 'HS256'), 'forged'],
    ['have another algorithm', '/secret', sign(claims(), secret, 'HS512'), 'forged'],
    ['have no signature', '/secret', `${unsigned.join('.')}.`, 'forged'],
    ['have no signature at all', '/secret', unsigned.join('.'), 'forged'],
    ['were changed', '/secret', `${right.slice(0, 40)}${right[40] === 'A' ? 'B' : 'A'}${right.slice(41)}`, 'forged'],
    ['use the private key of another issuer', '/secret', sign(claims(), privateKey, 'RS256'), 'forged'],
    ['are none', '/secret', 'token', 'forged'],
    ['are empty', '/secret', '', 'forged'],
  ])('that %s are refused', async (_, path, token, reason) => {
    const before = gateway.api.invocations.length;
    const reply = await gateway.visit('GET', `${path}/a`, { headers: bearer(token) });
    const why = reason === 'forged' ? 'it is malformed or its signature does not hold' : reason;
    expect([reply.status, reply.json]).toEqual([
      401,
      { status: 401, message: `Error: The token was refused: ${why}.` },
    ]);
    expect(reply.headers['www-authenticate']).toBe('Bearer error="invalid_token"');
    expect(gateway.api.invocations.length).toBe(before);
  });

  test('that pass off the public key as a secret are refused', async () => {
    const [head, body] = [{ alg: 'HS256', typ: 'JWT' }, claims()].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    );
    const { createHmac } = await import('node:crypto');
    const signature = createHmac('sha256', publicKey).update(`${head}.${body}`).digest('base64url');
    expect(await statusOf('/public', bearer(`${head}.${body}.${signature}`))).toBe(401);
  });

  test('are asked for', async () => {
    const reply = await gateway.visit('GET', '/secret/a');
    expect([reply.status, reply.json, reply.headers['www-authenticate']]).toEqual([
      401,
      { status: 401, message: 'Error: No Authorization header provided' },
      'Bearer',
    ]);
  });

  test('and keys are both needed where both are defined', async () => {
    const securityDefinitions = { key: apiKey('X-Api-Key'), configured: { type: 'oauth2' } };
    await api('/both', { securityDefinitions, security: [] });
    await subscribe('/both', 'client-one');
    const token = bearer(sign(claims(), secret, 'HS256'));
    expect(await statusOf('/both', token)).toBe(401);
    expect(await statusOf('/both', { 'x-api-key': 'client-one' })).toBe(401);
    expect(await statusOf('/both', { ...token, 'x-api-key': 'client-one' })).toBe(200);
  });

  test.each<[string, JsonObject]>([
    ['none as algorithm', { ...withSecret, algorithms: ['none'] }],
    ['no algorithm', { ...withSecret, algorithms: [] }],
    ['a short secret', { ...withSecret, secret: 'short' }],
    ['an algorithm of the other sort', { ...withSecret, algorithms: ['HS256', 'RS256'] }],
    ['a public key as secret', { ...withKey, algorithms: ['HS256'] }],
    ['no issuer', { algorithms: ['HS256'], secret }],
    ['a private key', { ...withKey, publicKey: privateKey }],
    ['a key of another sort', { ...withKey, algorithms: ['ES256'] }],
    ['a key on another curve', { ...withKey, algorithms: ['ES384'], publicKey: elliptic.publicKey }],
    ['a key that is too short', { ...withKey, publicKey: shortKey.publicKey }],
    ['no key', { issuer, algorithms: ['RS256'], publicKey: 'a key' }],
  ])('are not accepted of an issuer with %s', async (_, settings) => {
    const reply = await gateway.importSwagger(swaggerOf('/never', ['/a'], oauth2(settings)));
    expect(errorOf(reply)).toContain("x-gateway-jwt of security definition 'configured' needs issuer, algorithms");
  });
});

describe('rate limits', () => {
  const limit = (calls: number, more: JsonObject = {}): JsonObject => ({
    'x-gateway-rate-limit': [{ unit: 'minute', units: 2, rate: calls }],
    ...more,
  });

  test('count the calls of each key by itself', async () => {
    await api('/rated', limit(2, { securityDefinitions: { client_id: apiKey('X-Api-Key') } }));
    for (const client of ['client-one', 'client-two']) await subscribe('/rated', client);
    const statuses: number[] = [];
    for (const client of ['one', 'one', 'two', 'one', 'two', 'two']) {
      statuses.push(await statusOf('/rated', { 'x-api-key': `client-${client}` }));
    }
    expect(statuses).toEqual([200, 200, 200, 429, 200, 429]);
    expect(await statusOf('/rated')).toBe(401);
  });

  test('count all calls together where there are no keys, and begin anew with each window', async () => {
    await api('/shared', limit(1));
    now = nowSeconds * 1000 + 30_000;
    expect(await statusOf('/shared')).toBe(200);
    const reply = await gateway.visit('GET', '/shared/a');
    expect([reply.status, reply.json, reply.headers['retry-after']]).toEqual([
      429,
      { status: 429, message: 'Error: Rate limit exceeded' },
      '90',
    ]);
    now += 90_000;
    expect(await statusOf('/shared')).toBe(200);
    expect(await statusOf('/shared')).toBe(429);
  });
});

test("the platform's own credentials are not looked at", async () => {
  await api('/anyone', {});
  expect((await gateway.visit('GET', '/anyone/a', { as: { ...alice, key: 'wrong' } })).status).toBe(200);
});

// A provider behind an HTTP service of the operator.
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { ProcureOptions } from '@gpuwhisk/common/procure-schema';
import type { Network } from '@gpuwhisk/common/system/network';
import { readJson, readNotices, readPrices, readRented } from './provider-answers.js';
import { ProviderAnswerError } from './provider.js';
import type { Provider } from './provider.js';

/** Longest answer that is read, bytes. */
const maxAnswerBytes = 4 * 1024 * 1024;

/**
 * A provider whose calls are requests: POST `<url>/acquire` with `{request, market}`, POST `<url>/release` with
 * `{request, machine}`, GET `<url>/prices` and GET `<url>/notices`. `acquire` and `release` carry header `Idempotency-Key`. A
 * status other than 2xx is a failure; 404 of `prices` and `notices` is an empty answer.
 */
export function webhookProvider(
  { url, token }: NonNullable<ProcureOptions['webhook']>,
  { network, timeoutMs }: { network: Pick<Network, 'request'>; timeoutMs: number },
): Provider {
  const base = url.replace(/\/+$/, '');
  const ask = async (method: 'GET' | 'POST', path: string, body?: JsonObject): Promise<JsonValue> => {
    const headers = {
      accept: 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json', 'idempotency-key': `${path} ${String(body.request)}` }),
    };
    const text = body && JSON.stringify(body);
    const sent = { method, url: `${base}/${path}`, headers, timeoutMs, maxResponseBytes: maxAnswerBytes };
    const { status, body: answer } = await network.request({ ...sent, ...(text !== undefined && { body: text }) });
    if (status === 404 && method === 'GET') return {};
    if (status < 200 || status > 299) throw new ProviderAnswerError(`${method} ${path} was answered ${status}`);
    return readJson(answer.toString('utf8'));
  };
  return {
    acquire: async (request, market) => readRented(await ask('POST', 'acquire', { request, market })),
    async release(request, machine) {
      await ask('POST', 'release', { request, ...(machine !== undefined && { machine }) });
    },
    prices: async () => readPrices(await ask('GET', 'prices')),
    notices: async () => readNotices(await ask('GET', 'notices')),
  };
}

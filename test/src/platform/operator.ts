import { expect } from '@jest/globals';
import { ApiClient } from './api-client.js';
import type { RunningPlatform } from './running-platform.js';

const operatorKey =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';

/** What the API for administration answers to the platform's operator. */
export async function administer(
  platform: RunningPlatform,
  method: string,
  path: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${platform.url}/api/v1/admin/${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(operatorKey).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect([method, path, response.status]).toEqual([method, path, 200]);
  return (await response.json()) as Record<string, unknown>;
}

/** A new subject with limits of its own. */
export async function newSubject(
  platform: RunningPlatform,
  name: string,
  limits: Record<string, unknown>,
): Promise<ApiClient> {
  const { uuid, key } = await administer(platform, 'PUT', `subjects/${name}`, {});
  await administer(platform, 'PUT', `limits/${name}`, limits);
  return new ApiClient(platform.url, `${String(uuid)}:${String(key)}`);
}

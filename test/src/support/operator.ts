import { expect } from '@jest/globals';
import { ApiClient } from './api-client.js';
import type { RunningPlatform } from './running-platform.js';

/** The administration API's answer to the platform's operator. */
export async function administer(
  platform: RunningPlatform,
  method: string,
  path: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${platform.url}/api/v1/admin/${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(platform.operatorAuth).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect([method, path, response.status]).toEqual([method, path, 200]);
  return (await response.json()) as Record<string, unknown>;
}

/** Creates a subject with limits of its own. */
export async function newSubject(
  platform: RunningPlatform,
  name: string,
  limits: Record<string, unknown>,
): Promise<ApiClient> {
  const { uuid, key } = await administer(platform, 'PUT', `subjects/${name}`, {});
  await administer(platform, 'PUT', `limits/${name}`, limits);
  return new ApiClient(platform.url, `${String(uuid)}:${String(key)}`);
}

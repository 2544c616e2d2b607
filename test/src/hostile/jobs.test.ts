// Secrets in the parameters of training jobs.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasPython } from '../support/machine.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { otherAuth } from '../support/stem-cells.js';

const caseMs = 120_000;
const soonMs = 45_000;
const secret = 'parameter-of-a-job';
const training = `import time
import gpuwhisk_training

def main(args):
    while args.get("long") and not gpuwhisk_training.stopping():
        time.sleep(0.05)
    return {"length": len(args["token"])}
`;

(hasStandIn() && hasPython ? describe : describe.skip)('training jobs of tenants', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    const key = randomBytes(32).toString('base64');
    const storage = JSON.stringify({ current: 'aes-256', keys: { 'aes-256': [key] } });
    const flags = ['--gpus', 'sim:a100-40x1', '--stem-cells', 'false', '--set', `parameterStorage=${storage}`];
    platform = await startPlatform({ flags });
    const annotations = { gpu: { memoryMiB: 1000, mpsPercent: 30 } };
    for (const auth of [platform.auth, otherAuth]) {
      await platform.api.as(auth).putAction('train', training, { kind: 'python:default', annotations });
    }
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const jobs = (auth: string, method: string, path: string, body?: JsonObject) =>
    platform.api.as(auth).request(method, `../gpu/jobs${path}`, body);
  const start = async (auth: string, parameters: JsonObject): Promise<string> => {
    const { status, body } = await jobs(auth, 'POST', '', { action: 'train', parameters });
    expect([status, body]).toMatchObject([200, { state: 'queued' }]);
    return String(body.id);
  };
  const untilState = (auth: string, id: string, state: string): Promise<number> =>
    until(`job ${id} is ${state}`, async () => (await jobs(auth, 'GET', `/${id}`)).body.state === state, soonMs);
  const stored = async (namespace: string, id: string): Promise<JsonObject> => {
    const path = `../admin/databases/gpu/documents/${encodeURIComponent(`training-job/${namespace}/${id}`)}`;
    const { status, body } = await platform.api.as(platform.operatorAuth).request('GET', path);
    expect(status).toBe(200);
    return body;
  };

  test(
    'have their parameters encrypted in the store while they go on, and none when they have ended',
    async () => {
      const id = await start(platform.auth, { token: secret, long: true });
      await untilState(platform.auth, id, 'running');
      const running = await stored('guest', id);
      expect(running.parameters).toMatchObject([
        { key: 'token', encryption: 'aes-256' },
        { key: 'long', encryption: 'aes-256' },
      ]);
      expect(JSON.stringify(running)).not.toContain(secret);
      expect((await jobs(platform.auth, 'DELETE', `/${id}?graceMs=5000`)).status).toBe(200);
      await untilState(platform.auth, id, 'stopped');
      expect((await stored('guest', id)).parameters).toEqual([]);
    },
    caseMs,
  );

  test(
    'get their parameters decrypted, and are seen by their namespace and by operators',
    async () => {
      const id = await start(otherAuth, { token: secret });
      await untilState(otherAuth, id, 'succeeded');
      const { body } = await jobs(otherAuth, 'GET', `/${id}`);
      const [attempt] = body.attempts as { activationId: string }[];
      const record = await platform.api.as(otherAuth).record(attempt!.activationId);
      expect(record.response.result).toEqual({ length: secret.length });
      const ids = async (auth: string): Promise<unknown[]> =>
        ((await jobs(auth, 'GET', '')).body as unknown as { id: string }[]).map((job) => job.id);
      expect(await ids(otherAuth)).toEqual([id]);
      expect(await ids(platform.auth)).not.toContain(id);
      expect((await jobs(platform.auth, 'GET', `/${id}`)).status).toBe(404);
      expect((await jobs(platform.auth, 'DELETE', `/${id}`)).status).toBe(404);
      expect(await ids(platform.operatorAuth)).toContain(id);
      expect((await jobs(platform.operatorAuth, 'GET', `/${id}`)).status).toBe(200);
    },
    caseMs,
  );
});

// Two tenants without an operator's rights, on a platform as `npm start` gives it with simulated GPUs.
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ApiClient } from '../support/api-client.js';
import { newSubject } from '../support/operator.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

/** Time limit of a case, ms. */
export const caseMs = 120_000;
const soonMs = 60_000;

/** A platform with its tenants. */
export interface Tenancy {
  platform: RunningPlatform;
  attacker: ApiClient;
  victim: ApiClient;
}

/** Starts a platform with two tenants. */
export async function openTenancy(flags: string[] = []): Promise<Tenancy> {
  const platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40x2', '--stem-cells', 'false', ...flags] });
  const [attacker, victim] = [await newSubject(platform, 'attacker', {}), await newSubject(platform, 'victim', {})];
  return { platform, attacker, victim };
}

/** A training job as the API shows it. */
export interface ShownJob extends JsonObject {
  id: string;
  state: string;
}

/** Runs a Python program as a training job with checkpoints and resolves with the ended job. */
export async function runJob(tenant: ApiClient, code: string, more: JsonObject = {}): Promise<ShownJob> {
  const gpu = { memoryMiB: 3000, mpsPercent: 50 };
  await tenant.putAction('job', code, { kind: 'python:default', annotations: { gpu }, limits: { memory: 512 } });
  const body = { action: 'job', checkpointMiB: 64, restarts: 0, ...more };
  const { status, body: job } = await tenant.request<ShownJob>('POST', '../gpu/jobs', body);
  if (status !== 200) throw new Error(`The job was refused: ${JSON.stringify(job)}`);
  const shown = async (): Promise<ShownJob> => (await tenant.request<ShownJob>('GET', `../gpu/jobs/${job.id}`)).body;
  const ends = ['succeeded', 'failed', 'stopped'];
  await until('the job has ended', async () => ends.includes((await shown()).state), soonMs);
  return shown();
}

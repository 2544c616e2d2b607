import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { isApiError } from '@gpuwhisk/common/errors';
import type { GpuAnnotation } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { QuotaJob } from '@gpuwhisk/gpu/share/quotas';
import type { ActionResolver } from '../../actions/action-resolver.js';
import type { Identities } from '../../authentication/authentication.js';
import { parseActionName } from '../../entities/action-name.js';

/** A call that may be run any number of times to measure a function. */
export interface Sample {
  job: QuotaJob;
  /** The function's owner, in whose name the sample runs. */
  identity: Identity;
  /** The function, or the action that its annotation names in its place. */
  action: WhiskAction;
  payload: JsonObject;
  memoryMiB: number;
}

/** Finds what owners of functions allow to be run to measure them. */
export class SampleSource {
  constructor(
    private readonly identities: Pick<Identities, 'ofNamespace'>,
    private readonly resolver: Pick<ActionResolver, 'resolve'>,
  ) {}

  /** The sample of a function, or why none may be run. Rejects where the store fails. */
  async of(job: QuotaJob): Promise<Sample | string> {
    try {
      return await this.find(job);
    } catch (error) {
      // Gone, or its package is: what fails otherwise is tried again.
      if (isApiError(error) && error.status < 500) return 'it is not there any more';
      throw error;
    }
  }

  private async find(job: QuotaJob): Promise<Sample | string> {
    const namespace = parseActionName(job.function)?.namespace ?? '';
    const identity = await this.identities.ofNamespace(namespace);
    const own = await this.resolve(identity, job.function);
    if (own.version !== job.version) return `it has version ${own.version} by now`;
    const need = needOf(own);
    const problem = problemOf(own, need);
    if (problem !== undefined || need === undefined) return problem ?? 'it needs no GPU';
    const { sample } = need;
    if (sample === undefined) return 'it has no sample';
    if (typeof sample !== 'string') {
      return { job, identity, action: own, payload: sample as JsonObject, memoryMiB: need.memoryMiB };
    }
    const action = await this.resolve(identity, sample.startsWith('/') ? sample : `/${namespace}/${sample}`);
    const needed = needOf(action);
    const itsProblem = problemOf(action, needed);
    if (itsProblem !== undefined || needed === undefined) return `of its sample ${sample}: ${itsProblem}`;
    return { job, identity, action, payload: {}, memoryMiB: needed.memoryMiB };
  }

  private async resolve(identity: Identity, fullName: string): Promise<WhiskAction> {
    const name = parseActionName(fullName);
    if (name === undefined) throw new Error(`${fullName} is no action's name`);
    return (await this.resolver.resolve(identity, name)).action;
  }
}

function needOf({ annotations }: WhiskAction): GpuAnnotation | undefined {
  const value = parameterValue(annotations, 'gpu');
  return value === undefined ? undefined : readGpuAnnotation(value);
}

/** Why an action must not be run to find its share. */
function problemOf({ annotations }: WhiskAction, need: GpuAnnotation | undefined): string | undefined {
  if (need === undefined) return 'it needs no GPU';
  if (parameterValue(annotations, 'idempotent') !== true) return 'it is not idempotent';
  if (need.mpsPercent !== undefined || need.smLimit !== undefined) return 'its owner has fixed its share';
  if (need.batch > 1) return 'its requests run in batches';
  return need.gpus > 1 ? 'it needs several GPUs' : undefined;
}

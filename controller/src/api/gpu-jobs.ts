// Training jobs: functions that run for hours or days on GPUs.
import { readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { malformedContent, malformedQuery } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { TrainingStatus } from '@gpuwhisk/common/training';
import { parametersOf } from '../gpu/training/job-documents.js';
import { isOver, lastAttempt } from '../gpu/training/training-job.js';
import type { TrainingJob, TrainingOrder } from '../gpu/training/training-job.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { checkInvocable } from '../http/invocation.js';
import { readPutBody } from '../http/request.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { Route, RouteParameter, ViewerCall } from '../http/route.js';
import type { ApiContext } from './api-context.js';
import { maxPayloadOf } from '../entitlement/limits.js';
import { errorResponses, pathParameters } from './descriptions.js';
import { graceOf, resolveGpuAction } from './gpu-instances.js';

type Context = Pick<ApiContext, 'actionResolver' | 'config' | 'manifest' | 'throttles' | 'trainingJobs'>;

const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000];
/** Bounds of the fields of a new job, and their defaults. A timer of Node.js lasts for 24 days at most. */
const bounds = {
  gpus: { least: 1, most: 16 },
  members: { least: 1, most: 16 },
  restarts: { least: 0, most: 100, otherwise: 3 },
  timeLimitMs: { least: 1000, most: 20 * dayMs, otherwise: dayMs },
  rendezvousMs: { least: 0, most: 24 * hourMs, otherwise: 10 * minuteMs },
  checkpointMiB: { least: 1, most: 1024 * 1024 },
} as const;
const fields = ['action', 'parameters', ...Object.keys(bounds)];
const defaultGraceMs = 30_000;

/** A whole number within the bounds of a field; undefined if it is absent. Throws ApiError (400). */
function whole(body: JsonObject, field: keyof typeof bounds): number | undefined {
  const value = body[field];
  if (value === undefined) return undefined;
  const { least, most } = bounds[field];
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw malformedContent(`'${field}' must be a whole number from ${least} to ${most}`);
}

/** The GPUs and members of a job. Throws ApiError (400). */
function sizeOf(body: JsonObject, annotated: number): Pick<TrainingOrder, 'gpus' | 'members'> {
  const members = whole(body, 'members');
  const gpus = whole(body, 'gpus') ?? members ?? annotated;
  if (members !== undefined && members !== 1 && members !== gpus) {
    throw malformedContent(`'members' must be 1 or the number of GPUs, ${gpus}: each member has a GPU of its own`);
  }
  return { gpus, members: members ?? 1 };
}

/** Reads the body of a new job. Throws ApiError (400, 403, 404). */
async function readOrder(context: Context, call: ViewerCall): Promise<TrainingOrder> {
  const body = await readPutBody(call.request, maxPayloadOf(context, call.identity));
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  const unknown = Object.keys(body).find((key) => !fields.includes(key));
  if (unknown !== undefined) throw malformedContent(`'${unknown}' is no field of a training job`);
  const { action: given, parameters = {} } = body;
  if (typeof given !== 'string' || given === '') throw malformedContent("'action' must be the name of an action");
  if (!isJsonObject(parameters)) throw malformedContent("'parameters' must be a JSON object");
  if (call.identity.limits.storeActivations === false) {
    throw malformedContent('training jobs need the records of their activations, which this namespace does not store');
  }
  const { action } = await resolveGpuAction(context, call, given);
  if (!action.exec.kind.startsWith('python')) {
    throw malformedContent(`action '${given}' is of kind '${action.exec.kind}': training jobs run Python actions`);
  }
  checkInvocable(action, parameters, context.manifest());
  const size = sizeOf(body, annotatedGpus(action.annotations));
  const checkpointMiB = whole(body, 'checkpointMiB');
  const own = call.identity.namespace.name;
  return {
    namespace: own,
    action: given.startsWith('/') ? given.replace(/^\/_\//, `/${own}/`) : `/${own}/${given}`,
    parameters: parametersOf(parameters),
    ...size,
    maxRestarts: whole(body, 'restarts') ?? bounds.restarts.otherwise,
    timeLimitMs: whole(body, 'timeLimitMs') ?? bounds.timeLimitMs.otherwise,
    rendezvousMs: whole(body, 'rendezvousMs') ?? bounds.rendezvousMs.otherwise,
    ...(checkpointMiB !== undefined && { checkpointMiB }),
  };
}

/** The GPUs that an action's annotation asks for. Throws ApiError (400). */
function annotatedGpus(annotations: Parameters<typeof parameterValue>[0]): number {
  try {
    return readGpuAnnotation(parameterValue(annotations, 'gpu') as JsonValue).gpus;
  } catch (error) {
    throw malformedContent((error as Error).message);
  }
}

/** A job with the progress of its run. Its parameters may be secrets and are left out. */
function jobView(job: TrainingJob, status: TrainingStatus | undefined): JsonObject {
  const attempt = lastAttempt(job);
  const isNow = !isOver(job) && status !== undefined && status.activationId === attempt?.activationId;
  const { rate, joined, devices, checkpointUsedMiB, ...told } = isNow ? status : ({} as Partial<TrainingStatus>);
  // One that is stopping makes no steps while it writes its last checkpoint.
  const stalled = job.state === 'running' ? told.stalled : undefined;
  const progress = { steps: isNow ? status.steps : attempt?.steps, rate, stalled, joined, devices, checkpointUsedMiB };
  const hidden = ['parameters', 'interruptedInRow', 'graceMs'];
  const shown = Object.entries({ ...job, ...progress }).filter(
    ([name, value]) => value !== undefined && !hidden.includes(name),
  );
  return Object.fromEntries(shown) as unknown as JsonObject;
}

const queryParameter = (name: string, description: string): RouteParameter => ({
  name,
  in: 'query',
  type: 'integer',
  description,
});

/** A whole number of the query. Throws ApiError (400). */
function queryNumber({ query }: ViewerCall, name: string, otherwise: number): number {
  const text = query.get(name);
  if (text === null) return otherwise;
  if (!/^\d{1,9}$/.test(text)) throw malformedQuery(name, `${name} must be a whole number.`);
  return Number(text);
}

/** Routes to training jobs. */
export function gpuJobRoutes(context: Context): Route[] {
  const { trainingJobs, throttles } = context;
  /** The namespace whose jobs the caller may see; undefined: all. */
  const seenBy = ({ isOperator, identity }: ViewerCall): string | undefined =>
    isOperator ? undefined : identity.namespace.name;
  /** The job that the path names. Throws ApiError (404). */
  const jobOf = (call: ViewerCall): Promise<TrainingJob> => trainingJobs.get(pathParameter(call, 'id'), seenBy(call));
  const viewOf = async (job: TrainingJob): Promise<Answer> =>
    jsonAnswer(jobView(job, (await trainingJobs.statuses()).get(job.id)));
  const shared = { access: 'viewer', tag: 'GPUs' } as const;
  const all = { ...shared, path: `${apiRoot}/gpu/jobs` };
  const one = { ...shared, path: `${all.path}/{id}`, parameters: pathParameters({ id: 'Id of the job' }) };
  const job = { 200: { description: 'The job', schema: 'GpuJob' } } as const;
  return [
    {
      ...all,
      method: 'POST',
      operationId: 'startGpuJob',
      summary: 'Run a function as a training job',
      body: { schema: 'NewGpuJob', required: true },
      responses: { ...job, ...errorResponses(400, 401, 403, 404, 413, 429, 500, 503) },
      handle: async (call: ViewerCall) => {
        await throttles.admit(call.identity);
        return viewOf(await trainingJobs.start(await readOrder(context, call)));
      },
    },
    {
      ...all,
      method: 'GET',
      operationId: 'getGpuJobs',
      summary: 'Training jobs, the newest first',
      responses: { 200: { description: 'Jobs', schema: { arrayOf: 'GpuJob' } }, ...errorResponses(401, 500) },
      handle: async (call: ViewerCall) => {
        const statuses = await trainingJobs.statuses();
        const seen = await trainingJobs.list(seenBy(call));
        return jsonAnswer(seen.map((each) => jobView(each, statuses.get(each.id))));
      },
    },
    {
      ...one,
      method: 'GET',
      operationId: 'getGpuJob',
      summary: 'A training job with its runs and its progress',
      responses: { ...job, ...errorResponses(401, 404, 500) },
      handle: async (call: ViewerCall) => viewOf(await jobOf(call)),
    },
    {
      ...one,
      method: 'GET',
      path: `${one.path}/logs`,
      operationId: 'getGpuJobLogs',
      summary: 'A part of the log of a run, also while it goes on',
      parameters: [
        ...one.parameters,
        queryParameter('attempt', 'Number of the run, from 1; default: the first'),
        queryParameter('from', 'First line of the part, from 0'),
      ],
      responses: {
        200: { description: 'Lines of the log', schema: 'GpuJobLog' },
        ...errorResponses(400, 401, 404, 500),
      },
      handle: async (call: ViewerCall) => {
        const found = await jobOf(call);
        const first = found.attempts[0]?.number ?? 1;
        const part = await trainingJobs.log(found, queryNumber(call, 'attempt', first), queryNumber(call, 'from', 0));
        return jsonAnswer({ ...part, ...(part.next && { next: { ...part.next } }), state: found.state });
      },
    },
    {
      ...one,
      method: 'DELETE',
      operationId: 'stopGpuJob',
      summary: 'Stop a training job within a grace',
      parameters: [
        ...one.parameters,
        queryParameter('graceMs', `How long its members may go on, ms; default: ${defaultGraceMs}`),
      ],
      responses: { ...job, ...errorResponses(400, 401, 404, 500, 503) },
      handle: async (call: ViewerCall) => {
        const graceMs = graceOf(call) ?? defaultGraceMs;
        const { id, namespace } = await jobOf(call);
        return viewOf(await trainingJobs.stop(id, namespace, graceMs));
      },
    },
  ];
}

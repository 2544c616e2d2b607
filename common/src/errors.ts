const apiErrorMark = Symbol.for('gpuwhisk.ApiError');

/** What an ApiError carries beside its text. */
export interface ApiErrorDetails {
  headers?: Readonly<Record<string, string>>;
  /** The request was turned away before a resource handled it; such answers carry no CORS headers. */
  rejection?: boolean;
}

/** An answer other than success: an HTTP status and the text of the body's `error` field. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly [apiErrorMark] = true;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly rejection: boolean;

  constructor(
    readonly status: number,
    message: string,
    details: ApiErrorDetails = {},
  ) {
    super(message);
    this.headers = details.headers;
    this.rejection = details.rejection ?? false;
  }
}

/** Whether `error` is an ApiError, of whichever copy of this module. */
export function isApiError(error: unknown): error is ApiError {
  return typeof error === 'object' && error !== null && apiErrorMark in error;
}

const rejected = (status: number, message: string): ApiError => new ApiError(status, message, { rejection: true });

const challenge = {
  rejection: true,
  headers: { 'WWW-Authenticate': 'Basic realm="OpenWhisk secure realm",charset=UTF-8' },
};

/** Where a limit is set, after OpenWhisk's words about it; '' where no setting and no limit of a namespace sets it. */
const by = (setBy: string | undefined): string => (setBy === undefined ? '' : ` (${setBy})`);

// The table: one function a text. The texts are OpenWhisk's where it has one. `setBy` names where a limit is set.

/** 202: a web action did not end within the time that a caller waits. */
export const responseNotReady = (): ApiError => new ApiError(202, 'Response not yet ready.');

/** 400: the body is no JSON, or not the JSON that the resource expects. */
export const malformedContent = (detail: string): ApiError =>
  rejected(400, `The request content was malformed:\n${detail}`);
/** 400: arrays and objects within each other beyond what is accepted; the text is that of OpenWhisk's parser. */
export const nestedTooDeeply = (allowed: number): ApiError =>
  malformedContent(
    `JSON input nested too deeply:JSON input was nested more deeply than the set limit of maxNesting = ${allowed}`,
  );
/** 400: a body is needed and there is none. */
export const contentExpected = (): ApiError => rejected(400, 'Request entity expected but not supplied');
/** 400: a query parameter has an impossible value. */
export const malformedQuery = (parameter: string, detail: string): ApiError =>
  rejected(400, `The query parameter '${parameter}' was malformed:\n${detail}`);
/** 400: a segment of the path has an impossible value; `detail` is the whole text. */
export const malformedPath = (detail: string): ApiError => rejected(400, detail);
/** 400: a value is readable and not allowed (limits, requirements); `detail` is the whole text. */
export const notAllowed = (detail: string): ApiError => new ApiError(400, detail);
/** 400: creating an action without code. */
export const execUndefined = (): ApiError => new ApiError(400, 'exec undefined');
/** 400: the kind is past its life. */
export const deprecatedKind = (kind: string): ApiError =>
  new ApiError(
    400,
    `The '${kind}' runtime is no longer supported. You may read and delete but not update or invoke this action.`,
  );
/** 400: a sequence that comes to more actions than may be, those of its sequences included. */
export const sequenceTooLong = (setBy?: string): ApiError =>
  new ApiError(400, `Too many actions in the sequence.${by(setBy)}`);
/** 400 */
export const sequenceWithoutComponents = (): ApiError => new ApiError(400, 'No component specified for the sequence.');
/** 400: a sequence that is part of itself. */
export const sequenceCyclic = (): ApiError => new ApiError(400, 'Sequence may not refer to itself.');
/** 400 */
export const sequenceComponentMissing = (): ApiError => new ApiError(400, 'Sequence component does not exist.');
/** 400: arguments that collide with final parameters. */
export const parametersNotAllowed = (): ApiError =>
  new ApiError(400, 'Request defines parameters that are not allowed (e.g., reserved properties).');
/** 400: a package of this name would hide something else. */
export const packageNameReserved = (name: string): ApiError => new ApiError(400, `Package name '${name}' is reserved.`);
/** 400: a binding to nothing. */
export const bindingDoesNotExist = (): ApiError =>
  new ApiError(400, 'Binding references a package that does not exist.');
/** 400: a binding to a binding. */
export const bindingToBinding = (): ApiError => new ApiError(400, 'Cannot bind to another package binding.');
/** 400: writing an action through a binding. */
export const notAllowedOnBinding = (): ApiError => new ApiError(400, 'Operation not permitted on package binding.');
/** 400: a web action's result is not what the extension of the URL stands for. */
export const invalidWebResponse = (mediaType: string): ApiError =>
  new ApiError(400, `Response is not valid '${mediaType}'.`);
/** 400: a web action's result has a Content-Type that is none. */
export const unknownContentType = (): ApiError => new ApiError(400, 'Response did not specify a known content-type.');
/** 400: a web action's result has a body that its Content-Type cannot have. */
export const contentTypeMismatch = (): ApiError =>
  new ApiError(400, 'Response type in header did not match generated content type.');
/** 400: a web action ended with an error that is not its own answer. */
export const webActionFailed = (): ApiError => new ApiError(400, 'There was an error processing your request.');
/** 400: a new trigger's `feed` annotation cannot be an action's name. */
export const feedNameInvalid = (): ApiError => new ApiError(400, 'Feed name is not valid');
/** 400: a new rule lacks one of its two targets. */
export const ruleIncomplete = (): ApiError => new ApiError(400, 'rule requires a valid trigger and a valid action');
/** 400: a target of a rule; `id` is `ns/name` or `ns/pkg/name`. */
export const ruleTargetMissing = (target: 'trigger' | 'action', id: string): ApiError =>
  new ApiError(400, `${target} /${id} does not exist`);
/** 400: `docs` and `count` exclude each other. */
export const docsWithCount = (): ApiError => new ApiError(400, "The parameter 'docs' is not permitted with 'count'.");

const authenticationNeeded = 'The resource requires authentication, which was not supplied with the request';
/** 401 */
export const credentialsMissing = (): ApiError => new ApiError(401, authenticationNeeded, challenge);
/** 401: a web action wants the secret that its annotation names; browsers are not to ask for a password. */
export const authenticationRequired = (): ApiError => new ApiError(401, authenticationNeeded);
/** 401 */
export const credentialsInvalid = (): ApiError =>
  new ApiError(401, 'The supplied authentication is invalid', challenge);

/** 403: `resources` are `ns`, `ns/name` or `ns/pkg/name`; several are named in alphabetical order, each once. */
export const notAuthorized = (...resources: string[]): ApiError =>
  new ApiError(
    403,
    `The supplied authentication is not authorized to access '${[...new Set(resources)].sort().join(', ')}'.`,
  );
/** 403: what only operators may do. */
export const operatorsOnly = (): ApiError =>
  new ApiError(
    403,
    "The supplied authentication is not authorized to access this resource, which is for operators. On the machine of a standalone server, gpuwhisk operator-key shows an operator's key.",
  );
/** 403: the operator's key, where a namespace is meant. */
export const notOfNamespace = (): ApiError =>
  new ApiError(403, "The operator's key administers the platform and has no namespace. Use the key of a namespace.");
/** 403: the namespace's `allowedKinds` leaves the kind out. */
export const kindNotAuthorized = (kind: string): ApiError =>
  new ApiError(403, `The supplied authentication is not authorized to access actions of kind '${kind}'.`);

/** 403: shared packages are for execution only; `name` is `ns/pkg`. */
export const packageExecuteOnly = (name: string): ApiError =>
  new ApiError(403, `GET not permitted for '${name}' since it's a shared package`);
/** 403: as packageExecuteOnly, through a binding; `name` is the binding's, without its namespace. */
export const boundPackageExecuteOnly = (name: string): ApiError =>
  new ApiError(403, `GET not permitted since ${name} is a binding of a shared package`);
/** 403: as packageExecuteOnly, of an action; `packageId` is `ns/pkg`. */
export const actionExecuteOnly = (packageId: string): ApiError =>
  new ApiError(403, `GET not permitted for '${packageId}' since it's an action in a shared package`);
/** 403: as packageExecuteOnly, of an action through a binding; `action` is `ns/binding/action`. */
export const boundActionExecuteOnly = (action: string): ApiError =>
  new ApiError(
    403,
    `GET not permitted for '${action}'. Resource does not exist or is an action in a shared package binding.`,
  );

/** 404: no such entity. */
export const noSuchEntity = (): ApiError => new ApiError(404, 'The requested resource does not exist.');
/** 404: the version of an action is not kept. */
export const noSuchVersion = (kept: readonly string[], version: string | undefined): ApiError =>
  new ApiError(
    404,
    `${version === undefined ? 'No earlier version of the action is kept.' : `Version '${version}' of the action is not kept.`} ` +
      (kept.length === 0 ? 'There is none to restore.' : `Kept are: ${kept.join(', ')}.`),
  );
/** 400: several kept versions of an action have the number; `updated` are their times, epoch ms. */
export const ambiguousVersion = (updated: readonly number[], version: string): ApiError =>
  new ApiError(
    400,
    `Several versions of the action have the number '${version}'. Name the time of one, too ('updated'): ${updated.join(', ')}.`,
  );
/** 404: no such entity, by its name; `resource` is `ns/name`. */
export const noSuchResource = (resource: string): ApiError =>
  new ApiError(404, `The requested resource '${resource}' does not exist.`);
/** 404: a web action's result lacks the field that the extension of the URL stands for. */
export const propertyNotFound = (): ApiError => new ApiError(404, 'Response does not include requested property.');
/** 404: a rule cannot be activated without its trigger. */
export const ruleTriggerGone = (): ApiError => new ApiError(404, 'Only rules with existing triggers can be activated');
/** 404: the subject has no key for this namespace. */
export const noSuchNamespace = (namespace: string, subject: string): ApiError =>
  new ApiError(404, `Namespace "${namespace}" does not exist for "${subject}"`);
/** 404: a GPU by its UUID. */
/** `problem`: a clause. */
export const gpuNotCut = (problem: string): ApiError => new ApiError(403, `The GPU is not cut: ${problem}.`);
export const noSuchDevice = (device: string): ApiError => new ApiError(404, `There is no GPU ${device}.`);
export const noSuchNode = (invoker: string): ApiError => new ApiError(404, `There is no node '${invoker}' with a GPU.`);
/** 409: no provider is configured. */
export const nothingRented = (): ApiError => new ApiError(409, 'No machines are rented: gpu.procure.provider is none.');
/** 404: no such route. */
export const noSuchRoute = (): ApiError => rejected(404, 'The requested resource could not be found.');

/** 405 */
export const methodNotAllowed = (supported: readonly string[]): ApiError =>
  new ApiError(405, `HTTP method not allowed, supported methods: ${supported.join(', ')}`, {
    rejection: true,
    headers: { Allow: supported.join(', ') },
  });
/** 406 */
export const notAcceptable = (type: string): ApiError =>
  rejected(406, `Resource representation is only available with these types:\n${type}`);

/** 409: PUT without `overwrite=true`. */
export const alreadyExists = (): ApiError => new ApiError(409, 'resource already exists');
/** 409: another writer was faster; trying again may help. */
export const concurrentModification = (): ApiError =>
  new ApiError(409, 'Concurrent modification to resource detected.');
/** 409: the subject has a key for this namespace. */
export const namespaceExists = (): ApiError => new ApiError(409, 'Namespace already exists');
/** 409: the subject must be unblocked before it is changed. */
export const subjectBlocked = (): ApiError => new ApiError(409, 'The subject you want to edit is blocked');
/** 409: the name is held by an entity of another type. */
export const otherCollection = (): ApiError =>
  new ApiError(409, 'Resource by this name exists but is not in this collection.');

/** 409: a workload that is to be started as an MPS client, where the device has no MPS. */
export const deviceWithoutMps = (device: string): ApiError =>
  new ApiError(409, `Device ${device} takes no MPS clients.`);

/** 409: a binding to something that is no package. */
export const bindingToOther = (): ApiError => new ApiError(409, 'Cannot bind to a resource that is not a package.');
/** 409: a package is not made a binding. */
export const packageNotBindable = (): ApiError =>
  new ApiError(409, 'Resource is a package and cannot be converted into a binding.');
/** 409: deleting a package that has actions. */
export const packageNotEmpty = (actions: number): ApiError =>
  new ApiError(
    409,
    `Package not empty (contains ${actions} ${actions === 1 ? 'entity' : 'entities'}). Set force param or delete package contents.`,
  );

/** 413: `field` is `exec`, `parameters`, `annotations` or `Request`. */
export const tooLarge = (field: string, bytes: number, allowedBytes: number, setBy?: string): ApiError =>
  new ApiError(413, `${field} larger than allowed: ${bytes} > ${allowedBytes} bytes.${by(setBy)}`);
/** 414: begins as the answer of OpenWhisk's edge does. */
export const uriTooLong = (allowedBytes: number): ApiError =>
  rejected(414, `414 Request-URI Too Large: at most ${allowedBytes} characters are allowed`);
/** 415 */
export const unsupportedContentType = (contentType: string): ApiError =>
  rejected(415, `The request's Content-Type [${contentType}] is not supported. Expected:\napplication/json`);

/** 422: bindings that refer to each other; `binding` is `ns/name`. */
export const circularBinding = (binding: string): ApiError =>
  new ApiError(422, `Package binding '${binding}' contains a circular reference.`);

/** 429: more invocations, or fires, than a namespace may have in a calendar minute. */
export const tooManyRequests = (count: number, allowed: number, setBy?: string): ApiError =>
  new ApiError(429, `Too many requests in the last minute (count: ${count}, allowed: ${allowed}).${by(setBy)}`);
/** 429: a namespace has as many activations in flight as it may, or as many of all namespaces wait. */
export const tooManyInFlight = (count: number, allowed: number, setBy?: string): ApiError =>
  new ApiError(429, `Too many concurrent requests in flight (count: ${count}, allowed: ${allowed}).${by(setBy)}`);
/** 429: as many activations wait as may. */
export const queueFull = ({ pending, allowed }: { pending: number; allowed: number }): ApiError =>
  tooManyInFlight(pending, allowed, 'settings: maxQueuedActivations, maxQueuedBytes');
/** 429: a namespace's activations in flight ask for as much of GPUs as `limit` of its limits allows; memory in MiB. */
export const tooManyGpusInFlight = (limit: string, count: number, allowed: number): ApiError =>
  new ApiError(
    429,
    `Too many concurrent GPU requests in flight (count: ${count}, allowed: ${allowed}, limit: ${limit}).`,
  );
/** 429: a namespace's functions have had GPUs for as many seconds of the minute as they may. */
export const tooManyGpuSeconds = (count: number, allowed: number): ApiError =>
  new ApiError(429, `Too many GPU seconds in the last minute (count: ${count}, allowed: ${allowed}).`);
/** 429: a namespace has stored as many bytes as it may. */
export const tooMuchStored = (bytes: number, allowedBytes: number): ApiError =>
  new ApiError(
    429,
    `Too much is stored in the namespace (bytes: ${bytes}, allowed: ${allowedBytes}, limit: storedMiB). ` +
      'Delete entities, or wait until records of activations expire.',
  );
/** 429: an action asks for a larger share of a GPU, percent, than its namespace may have. */
export const gpuShareTooLarge = (asked: number, allowed: number): ApiError =>
  new ApiError(
    429,
    `Too large a share of a GPU requested (requested: ${asked}, allowed: ${allowed}, limit: maxGpuShare).`,
  );
/** 429: a namespace has registered as many workloads beside its functions as it may. */
export const tooManyWorkloads = (count: number, allowed: number): ApiError =>
  new ApiError(429, `Too many workloads are registered (count: ${count}, allowed: ${allowed}).`);
/** 429: a namespace has as many training jobs that have not ended as it may. */
export const tooManyTrainingJobs = (count: number, allowed: number): ApiError =>
  new ApiError(429, `Too many training jobs have not ended (count: ${count}, allowed: ${allowed}).`);
/** 429: no GPU became free in time, and those that are late are refused by configuration. */
export const gpuTooLate = (sloMs: number): ApiError =>
  new ApiError(429, `No GPU became free within the action's SLO of ${sloMs} ms.`);

/** 429: it is predicted that no GPU can run it in time. */
export const gpuSloImpossible = (reason: string): ApiError =>
  new ApiError(429, `The action's SLO cannot be met: ${reason}.`);

/** A sample is not run where it was to be measured. */
export const sampleNotRun = (reason: string): ApiError => new ApiError(503, `The sample was not run: ${reason}.`);

/** A policy is being tried already. */
export const trialUnderWay = (): ApiError => new ApiError(429, 'A policy is being tried already.');
export const trialFailed = (reason: string): ApiError => new ApiError(503, `The policy was not tried: ${reason}.`);
/** 503: the controller that was asked does not decide about GPUs. */
export const viewNotSaved = (): ApiError =>
  new ApiError(503, 'There is no view of the GPUs here: another controller decides about GPUs, ask that one.');
/** 503: the controller that was asked does not decide about GPUs. */
export const trainingJobsElsewhere = (): ApiError =>
  new ApiError(503, 'Training jobs are not run here: another controller decides about GPUs, ask that one.');
/** 503: a training job was asked to stop while its run waited for a GPU. */
export const trainingJobStopped = (): ApiError => new ApiError(503, 'The training job was stopped.');
export const noSuchTrainingJob = (id: string): ApiError => new ApiError(404, `There is no training job '${id}'.`);
export const noSuchInstance = (container: string): ApiError =>
  new ApiError(404, `There is no instance ${container} on a GPU.`);
/** The controller that was asked does not decide about GPUs. */
export const instanceNotChanged = (reason: string): ApiError =>
  new ApiError(503, `The instance was not changed: ${reason}.`);
/** An instance was not launched. */
export const instanceNotLaunched = (reason: string): ApiError =>
  new ApiError(503, `The instance was not launched: ${reason}.`);

/** 500: our fault; the log says more. */
export const internalError = (): ApiError => new ApiError(500, 'There was an internal server error.');
/** 500: a stored document cannot be understood. */
export const corruptedEntity = (): ApiError => new ApiError(500, 'Resource is corrupted and cannot be read.');
/** 503: no invoker, or the platform is shutting down. */
export const overloaded = (): ApiError =>
  new ApiError(503, 'The server is currently unavailable (because it is overloaded or down for maintenance).');
/** 429: a namespace follows as much as it may. */
export const tooManyStreams = (allowed: number): ApiError =>
  new ApiError(429, `Too many streams are open (allowed: ${allowed}).`);
/** 503: the action has annotation `gpu`. */
export const noGpu = (): ApiError => new ApiError(503, 'The action needs a GPU, and no invoker has one.');
/** 503: no GPU could ever serve the action; `reason` names the field of annotation `gpu` and what there is. */
export const noSuchGpu = (reason: string): ApiError =>
  new ApiError(503, `The action needs a GPU that is not there: ${reason}.`);
/** 503: none became free for as long as an activation may wait. */
export const gpuWaitTooLong = (waitMs: number): ApiError =>
  new ApiError(503, `No GPU became free for the action within ${waitMs} ms.`);
/** 503: agents gave the activation back, the last one for `reason`. */
export const gpuRefused = (times: number, reason: string): ApiError =>
  new ApiError(503, `The action was placed ${times} times, and no GPU took it: ${reason}.`);
/** 507: the disk of the store has too little space left. */
export const storeFull = (): ApiError =>
  new ApiError(507, 'The disk of the platform is full: nothing new is stored or run until it has free space.');

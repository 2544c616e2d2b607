import { actionToApi } from '@gpuwhisk/common/entities/action';
import type { Exec, WhiskAction } from '@gpuwhisk/common/entities/action';
import { mostSmallBytes } from '@gpuwhisk/common/entities/large-code';
import type { Config } from '@gpuwhisk/common/config';
import { base64Bytes, isSequence } from '@gpuwhisk/common/entities/exec-codec';
import { packageId } from '@gpuwhisk/common/entities/package';
import { mergeParameters } from '@gpuwhisk/common/entities/parameters';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import {
  defaultLimits,
  gpuDefaultLimits,
  limitsProblem,
  maxCodeFor,
  parametersBound,
} from '@gpuwhisk/common/entities/limits';
import { kindNotAuthorized, notAllowed } from '@gpuwhisk/common/errors';
import { resolveKind } from '@gpuwhisk/common/runtimes';
import { readActionPut } from '../actions/action-put.js';
import type { MergeContext } from '../actions/action-put.js';
import { checkActionShown, providerOf, readablePackages } from '../entitlement/rights.js';
import type { Answer } from '../http/answer.js';
import { checkSequence, inNamespace } from '../compose/sequence.js';
import { hasLargeCode } from '../http/action-answer.js';
import { mayBeLarge, readActionBody } from '../http/action-body.js';
import type { BodyBounds } from '../http/action-body.js';
import { jsonAnswer } from '../http/answer.js';
import {
  checkContentType,
  checkDeclaredLength,
  parseArguments,
  readBody,
  wantsExtraLogging,
  booleanParameter,
} from '../http/request.js';
import { listEntities, listRows } from './collections.js';
import type { ApiContext } from './api-context.js';
import { boundsOf, gpuBoundsOf, maxPayloadOf } from '../entitlement/limits.js';
import {
  actionNameParameter,
  codeParameter,
  errorResponses,
  invokeParameters,
  listParameters,
  namespaceParameter,
  overwriteParameter,
  packageNameParameter,
} from './descriptions.js';
import { checkInvocable, invocationAnswer, readInvokeOptions } from '../http/invocation.js';
import { apiRoot, checkOwner, entityNameOf, namespaceOf } from '../http/route.js';
import type { IdentifiedCall, Route } from '../http/route.js';
import { parseActionName } from '../entities/action-name.js';
import type { ActionName } from '../entities/action-name.js';

/** Dependencies of the routes to actions. */
export type ActionContext = Pick<
  ApiContext,
  | 'actionResolver'
  | 'actionWriter'
  | 'clock'
  | 'config'
  | 'gpuTable'
  | 'invoker'
  | 'largeCodes'
  | 'logger'
  | 'manifest'
  | 'packageWriter'
  | 'packages'
  | 'performanceData'
  | 'requestTraces'
  | 'store'
  | 'throttles'
>;

/** The action that the path names. Throws ApiError (400). */
function actionNameOf(call: IdentifiedCall): ActionName {
  const namespace = namespaceOf(call);
  const name = entityNameOf(call, 'actionName');
  if (call.params.packageName === undefined) return { namespace, name };
  return { namespace, packageName: entityNameOf(call, 'packageName'), name };
}

/** The place of an action that the caller may write. */
export interface WritableAction {
  /** `ns` or `ns/pkg`. */
  namespace: string;
  name: string;
  /** Parameters of its package. */
  inherited: readonly Parameter[];
  /** Does `work`, during which the package of the action is not deleted. */
  write<Result>(work: () => Promise<Result>): Promise<Result>;
}

/**
 * The place of an action that the caller may write: in the caller's namespace, and in an existing package that is no
 * binding. Throws ApiError (400, 403, 404, 409, 500).
 */
export async function writableAction(context: ActionContext, call: IdentifiedCall): Promise<WritableAction> {
  const { namespace, packageName, name } = actionNameOf(call);
  if (packageName === undefined) {
    checkOwner(call, namespace, name);
    return { namespace, name, inherited: [], write: (work) => work() };
  }
  checkOwner(call, namespace, packageName, name);
  const place = { namespace, name: packageName };
  const { packageWriter } = context;
  const { parameters: inherited } = await packageWriter.checkPlace(place);
  return { namespace: packageId(place), name, inherited, write: (work) => packageWriter.writeInside(place, work) };
}

/** Refuses a sequence that cannot run, and kinds that the caller may not use. Throws ApiError (400, 403, 404, 409, 500). */
export async function checkExec(
  { actionResolver, config, manifest }: Pick<ActionContext, 'actionResolver' | 'config' | 'manifest'>,
  { identity }: IdentifiedCall,
  id: string,
  exec: Exec,
): Promise<void> {
  if (isSequence(exec)) {
    const { maxSequenceLength } = config.limits;
    const components = exec.components.slice(0, maxSequenceLength).map(parseActionName);
    await actionResolver.checkUsable(
      identity,
      components.filter((one) => one !== undefined),
    );
    await checkSequence(actionResolver, identity, id, exec, maxSequenceLength);
  }
  const { allowedKinds } = identity.limits;
  if (allowedKinds === undefined) return;
  const isAllowed = allowedKinds.some((kind) => (resolveKind(manifest(), kind)?.kind ?? kind) === exec.kind);
  if (!isAllowed) throw kindNotAuthorized(exec.kind);
}

/** The bounds that an action of the caller is written within. */
export function mergeContext(
  context: ActionContext,
  { identity }: IdentifiedCall,
  inherited: readonly Parameter[],
): MergeContext {
  const gpuBounds = gpuBoundsOf(context, identity);
  return {
    manifest: context.manifest(),
    bounds: boundsOf(context, identity),
    gpuBounds,
    gpuNodes: context.gpuTable.nodes(),
    defaultLimits: defaultLimits(context.config.limits),
    gpuDefaultLimits: gpuDefaultLimits(context.config.limits, gpuBounds),
    inherited,
    nowMs: context.clock.now(),
  };
}

/** Bounds on the body of an action's PUT: code and both lists of parameters at their maximum sizes. */
function bodyBounds(limits: Config['limits']): BodyBounds {
  const { bytes: codeBytes, setBy } = maxCodeFor(limits);
  const parameters = parametersBound(limits, 2);
  const rest = { ...parameters, bytes: parameters.bytes + mostSmallBytes };
  const whole = base64Bytes(codeBytes) + rest.bytes;
  return { whole: { bytes: whole, setBy: `code of ${codeBytes} bytes at most, in base64; ${setBy}` }, rest };
}

async function putAction(context: ActionContext, call: IdentifiedCall): Promise<Answer> {
  const { config } = context;
  const { namespace, name, inherited, write } = await writableAction(context, call);
  return context.largeCodes.answer(call.identity.namespace.name, mayBeLarge(call.request), async () => {
    const body = await readActionBody(call.request, bodyBounds(config.limits), context.clock);
    const manifest = context.manifest();
    const bounds = boundsOf(context, call.identity);
    const put = readActionPut(body, manifest, { ...bounds, maxCode: maxCodeFor(config.limits) });
    const overwrite = booleanParameter(call.query, 'overwrite', false);
    // Before an update the stored annotations, which may ask for a GPU, are not known.
    const mayNeedGpu = overwrite || (put.annotations ?? []).some(({ key }) => key === 'gpu');
    const gpuBounds = gpuBoundsOf(context, call.identity);
    const problem = limitsProblem(put.limits ?? {}, mayNeedGpu ? gpuBounds : bounds);
    if (problem !== undefined) throw notAllowed(problem);
    if (put.exec !== undefined && isSequence(put.exec)) {
      put.exec = { ...put.exec, components: inNamespace(put.exec.components, call.identity.namespace.name) };
    }
    if (put.exec !== undefined) await checkExec(context, call, `${namespace}/${name}`, put.exec);
    const merge = mergeContext(context, call, inherited);
    const written = await write(() => context.actionWriter.put(namespace, name, put, overwrite, merge));
    context.performanceData.trials.written(written, merge.nowMs);
    return written;
  });
}

async function getAction(context: ActionContext, call: IdentifiedCall): Promise<Answer> {
  const code = booleanParameter(call.query, 'code', true);
  const { actionResolver, actionWriter } = context;
  const asked = actionNameOf(call);
  const place = await actionResolver.locate(call.identity, asked);
  if (context.config.sharedPackagesExecuteOnly) checkActionShown(call.identity.namespace.name, asked, place);
  const { namespace, name, inherited, binding } = place;
  const merged = (stored: WhiskAction): WhiskAction => ({
    ...stored,
    parameters: mergeParameters(inherited, stored.parameters),
  });
  const stored = await actionWriter.read(namespace, name);
  if (code) {
    const read = async (): Promise<WhiskAction> => merged(await actionWriter.readWithCode(namespace, name));
    return context.largeCodes.answer(call.identity.namespace.name, hasLargeCode(stored), read);
  }
  const shown = actionToApi(merged(stored), { code });
  return jsonAnswer(binding === undefined ? shown : { ...shown, binding });
}

async function deleteAction(context: ActionContext, call: IdentifiedCall): Promise<Answer> {
  const { namespace, name } = await writableAction(context, call);
  const { actionWriter, largeCodes, performanceData } = context;
  const isLarge = hasLargeCode(await actionWriter.read(namespace, name));
  return largeCodes.answer(call.identity.namespace.name, isLarge, async () => {
    const deleted = await actionWriter.delete(namespace, name);
    performanceData.trials.deleted(`/${namespace}/${name}`);
    return deleted;
  });
}

/** The actions of a package, or of the package that a binding leads to. */
async function listPackageActions(context: ActionContext, call: IdentifiedCall): Promise<Answer> {
  const name = { namespace: namespaceOf(call), name: entityNameOf(call, 'packageName') };
  const chain = await readablePackages(context.packages, call.identity, name);
  return listRows(context, call, { collection: 'actions', view: 'actions', path: packageId(providerOf(chain)) });
}

async function invokeAction(context: ActionContext, call: IdentifiedCall): Promise<Answer> {
  const name = actionNameOf(call);
  const { request, identity, transactionId } = call;
  await context.throttles.admit(identity);
  const maxPayload = maxPayloadOf(context, identity);
  checkDeclaredLength(request, maxPayload);
  const options = readInvokeOptions(call.query, context.config.blockingWaitMs);
  const body = await readBody(request, maxPayload, context.clock);
  checkContentType(request.headers['content-type'], body.length);
  const payload = parseArguments(body);
  const resolved = await context.actionResolver.resolve(identity, name);
  checkInvocable(resolved.action, payload, context.manifest());
  const { blocking, waitMs } = options;
  const outcome = await context.invoker.invoke({
    ...resolved,
    identity,
    payload,
    blocking,
    waitMs,
    transactionId,
    extraLogging: wantsExtraLogging(request),
    trace: context.requestTraces?.of(request),
  });
  return invocationAnswer(outcome, options.result);
}

/** Routes to manage and invoke actions. */
export function actionRoutes(context: ActionContext): Route[] {
  const path = `${apiRoot}/namespaces/{namespace}/actions`;
  const shared = { access: 'identified', tag: 'Actions' } as const;
  const one = { ...shared, path: `${path}/{actionName}` };
  const packaged = { ...shared, path: `${path}/{packageName}/{actionName}` };
  const names = [namespaceParameter, actionNameParameter];
  const packagedNames = [namespaceParameter, packageNameParameter, actionNameParameter];
  const action = { 200: { description: 'The action', schema: 'Action' } } as const;
  const put = {
    body: { schema: 'ActionPut', required: true },
    responses: { ...action, ...errorResponses(400, 401, 403, 404, 409, 413, 500) },
  } as const;
  // 429 comes from requests with large code, of which a namespace may have a few at once.
  const remove = { responses: { ...action, ...errorResponses(400, 401, 403, 404, 409, 429, 500) } } as const;
  const invoke = {
    body: { schema: 'ActionPayload', required: false },
    responses: {
      200: { description: 'The record, or the result' },
      202: { description: 'Accepted', schema: 'ActivationId' },
      ...errorResponses(400, 401, 403, 404, 413, 429, 500),
      502: { description: 'The action failed' },
      ...errorResponses(503),
    },
  } as const;
  const get = { responses: { ...action, ...errorResponses(400, 401, 403, 404, 409, 429, 500) } } as const;
  return [
    {
      ...shared,
      method: 'GET',
      path,
      trailingSlash: true,
      operationId: 'getAllActions',
      summary: 'Actions of a namespace, last written first',
      parameters: [namespaceParameter, ...listParameters],
      responses: {
        200: { description: 'Actions', schema: { arrayOf: 'ActionMeta', count: 'actions' } },
        ...errorResponses(400, 401, 403, 500),
      },
      handle: (call: IdentifiedCall) => listEntities(context, call, 'actions'),
    },
    {
      ...one,
      ...put,
      method: 'PUT',
      stores: true,
      operationId: 'updateAction',
      summary: 'Create or update an action',
      parameters: [...names, overwriteParameter],
      handle: (call: IdentifiedCall) => putAction(context, call),
    },
    {
      ...one,
      ...get,
      method: 'GET',
      operationId: 'getActionByName',
      summary: 'An action',
      parameters: [...names, codeParameter],
      handle: (call: IdentifiedCall) => getAction(context, call),
    },
    {
      ...one,
      ...remove,
      method: 'DELETE',
      operationId: 'deleteAction',
      summary: 'Delete an action',
      parameters: names,
      handle: (call: IdentifiedCall) => deleteAction(context, call),
    },
    {
      ...one,
      ...invoke,
      method: 'POST',
      operationId: 'invokeAction',
      summary: 'Invoke an action',
      parameters: [...names, ...invokeParameters],
      handle: (call: IdentifiedCall) => invokeAction(context, call),
    },
    {
      ...shared,
      method: 'GET',
      path: `${path}/{packageName}/`,
      operationId: 'getActionsInPackage',
      summary: 'Actions of a package',
      parameters: [namespaceParameter, packageNameParameter, ...listParameters],
      responses: {
        200: { description: 'Actions', schema: { arrayOf: 'ActionMeta', count: 'actions' } },
        ...errorResponses(400, 401, 403, 404, 500),
      },
      handle: (call: IdentifiedCall) => listPackageActions(context, call),
    },
    {
      ...packaged,
      ...put,
      method: 'PUT',
      stores: true,
      operationId: 'updateActionInPackage',
      summary: 'Create or update an action in a package',
      parameters: [...packagedNames, overwriteParameter],
      handle: (call: IdentifiedCall) => putAction(context, call),
    },
    {
      ...packaged,
      ...get,
      method: 'GET',
      operationId: 'getActionInPackageByName',
      summary: 'An action in a package',
      parameters: [...packagedNames, codeParameter],
      handle: (call: IdentifiedCall) => getAction(context, call),
    },
    {
      ...packaged,
      ...remove,
      method: 'DELETE',
      operationId: 'deleteActionInPackage',
      summary: 'Delete an action in a package',
      parameters: packagedNames,
      handle: (call: IdentifiedCall) => deleteAction(context, call),
    },
    {
      ...packaged,
      ...invoke,
      method: 'POST',
      operationId: 'invokeActionInPackage',
      summary: 'Invoke an action in a package',
      parameters: [...packagedNames, ...invokeParameters],
      handle: (call: IdentifiedCall) => invokeAction(context, call),
    },
  ];
}

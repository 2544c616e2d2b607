// An action's PUT: its body, and the action that it makes or changes.
import type { Exec, SequenceExec, WhiskAction, ActionLimits } from '@gpuwhisk/common/entities/action';
import type { GivenCode } from '@gpuwhisk/common/entities/exec-codec';
import { execBytes, readExecInput, isSequence } from '@gpuwhisk/common/entities/exec-codec';
import { readLimitsPatch, instancesProblem, limitsProblem } from '@gpuwhisk/common/entities/limits';
import type { ByteBound, LimitBounds, LimitsPatch } from '@gpuwhisk/common/entities/limits';
import { asArray, asBoolean, asObject, asString } from '@gpuwhisk/common/entities/malformed';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { parametersBytes, readParameters, mergeParameters, parameterValue } from '@gpuwhisk/common/entities/parameters';
import { readVersion, bumpPatch, firstVersion } from '@gpuwhisk/common/entities/names';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { execUndefined, notAllowed } from '@gpuwhisk/common/errors';
import { GpuAnnotationError, readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import { validateRequirements, readWarm } from '@gpuwhisk/common/entities/action-annotations';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import { capacityProblem } from '@gpuwhisk/gpu/stages/geometry/capacity';
import { checkFieldSize, optionalField, readFields, withoutAbsent } from '../http/request.js';
import { acceptGiven } from '../entities/stored-entity.js';
import { checkNotDeprecated } from '../http/invocation.js';

/** The body of an action's PUT. An absent field keeps its stored value, or has its default in a new action. */
export interface ActionPut {
  exec?: Exec;
  parameters?: Parameter[];
  limits?: LimitsPatch;
  version?: string;
  publish?: boolean;
  annotations?: Parameter[];
  delAnnotations?: string[];
}

/** Bounds on the size of a PUT. */
type PutBounds = Pick<LimitBounds, 'maxParameters'> & { maxCode: ByteBound };

/**
 * Reads a PUT body, with the large code that was taken out of it. As in OpenWhisk, large fields are read and measured before the others. Unknown fields are ignored.
 * Throws ApiError (400, 413).
 */
export function readActionPut(
  { value: body, large }: { value: JsonValue; large?: GivenCode },
  manifest: RuntimeManifest,
  bounds: PutBounds,
): ActionPut {
  return readFields(() => {
    const fields = asObject(body, "Object expected in field 'exec'");
    const exec = optionalField(fields.exec, (value) => readExecInput(value, manifest, large));
    const parameters = optionalField(fields.parameters, readParameters);
    const annotations = optionalField(fields.annotations, readParameters);
    if (exec !== undefined) checkFieldSize('exec', execBytes(exec), bounds.maxCode);
    if (parameters !== undefined) checkFieldSize('parameters', parametersBytes(parameters), bounds.maxParameters);
    if (annotations !== undefined) checkFieldSize('annotations', parametersBytes(annotations), bounds.maxParameters);
    return withoutAbsent<ActionPut>({
      exec,
      parameters,
      annotations,
      limits: optionalField(fields.limits, readLimitsPatch),
      version: optionalField(fields.version, readVersion),
      publish: optionalField(fields.publish, asBoolean),
      delAnnotations: optionalField(fields.delAnnotations, readKeys),
    });
  });
}

function readKeys(value: JsonValue): string[] {
  const text = (found: JsonValue, type: string): string => `Expected ${type}, but got ${JSON.stringify(found)}`;
  return asArray(value, text(value, 'Array as JsArray')).map((key) => asString(key, text(key, 'String as JsString')));
}

/** The bounds that a PUT is checked against, and the defaults of a new action. */
export interface MergeContext {
  manifest: RuntimeManifest;
  bounds: LimitBounds;
  /** Bounds of actions with annotation `gpu`. */
  gpuBounds: LimitBounds;
  /** The GPUs of all nodes with a current row. */
  gpuNodes: readonly NodeStatus[];
  defaultLimits: ActionLimits;
  /** Of actions with annotation `gpu`. */
  gpuDefaultLimits: ActionLimits;
  /** Parameters of the action's package. */
  inherited: readonly Parameter[];
  /** Epoch ms. */
  nowMs: number;
}

/** A new action from a PUT. Throws ApiError (400). */
export function makeAction(namespace: string, name: string, put: ActionPut, context: MergeContext): WhiskAction {
  checkInstances(put, context);
  const { exec } = put;
  if (exec === undefined) throw execUndefined();
  checkNotDeprecated(exec.kind, context.manifest);
  const given = put.annotations ?? [];
  const annotations =
    parameterValue(given, 'provide-api-key') === undefined
      ? [...given, { key: 'provide-api-key', value: false }]
      : given;
  return checked(put, context, {
    namespace,
    name,
    exec,
    parameters: isSequence(exec) ? sequenceParameters(exec) : (givenParameters(put, [], context) ?? []),
    limits: { ...defaultsFor(exec, annotations, context), ...put.limits },
    version: put.version ?? firstVersion,
    publish: put.publish ?? false,
    annotations: withKind(annotations, exec.kind),
    updated: context.nowMs,
    revision: '',
  });
}

/** The stored action with the changes of a PUT. Throws ApiError (400). */
export function updateAction(stored: WhiskAction, put: ActionPut, context: MergeContext): WhiskAction {
  checkInstances(put, context);
  const exec = put.exec ?? stored.exec;
  checkNotDeprecated(exec.kind, context.manifest);
  const deleted = new Set(put.delAnnotations);
  const kept = stored.annotations.filter(({ key }) => !deleted.has(key));
  const annotations = mergeParameters(kept, put.annotations ?? []);
  return checked(put, context, {
    ...stored,
    exec,
    parameters: mergedParameters(stored, put, context),
    limits: { ...moved(stored, exec, annotations, context), ...put.limits },
    version: put.version ?? bumpPatch(stored.version),
    publish: put.publish ?? stored.publish,
    annotations: withKind(annotations, exec.kind),
    updated: context.nowMs,
  });
}

function defaultsFor(
  exec: Exec,
  annotations: readonly Parameter[],
  { defaultLimits, gpuDefaultLimits }: Pick<MergeContext, 'defaultLimits' | 'gpuDefaultLimits'>,
): ActionLimits {
  return hasGpu(exec, annotations) ? gpuDefaultLimits : defaultLimits;
}

function hasGpu(exec: Exec, annotations: readonly Parameter[]): boolean {
  return !isSequence(exec) && parameterValue(annotations, 'gpu') !== undefined;
}

/** The stored limits; where annotation `gpu` is new or is gone, those that are still the defaults become the other defaults. */
function moved(
  { exec: before, annotations: had, limits }: WhiskAction,
  exec: Exec,
  annotations: readonly Parameter[],
  context: MergeContext,
): ActionLimits {
  const [from, to] = [defaultsFor(before, had, context), defaultsFor(exec, annotations, context)];
  return {
    ...limits,
    ...(limits.timeout === from.timeout && { timeout: to.timeout }),
    ...(limits.memory === from.memory && { memory: to.memory }),
  };
}

/** The stored action with code and settings of an earlier version, under a new number. Throws ApiError (400). */
export function restoreAction(stored: WhiskAction, earlier: WhiskAction, context: MergeContext): WhiskAction {
  const { limits } = earlier;
  checkInstances({ limits }, context);
  checkNotDeprecated(earlier.exec.kind, context.manifest);
  return checked({ limits }, context, {
    ...earlier,
    version: bumpPatch(stored.version),
    updated: context.nowMs,
    revision: stored.revision,
  });
}

/**
 * The parameters after a PUT. A sequence's parameters are derived from its components: given ones are dropped, and derived
 * ones are removed when the action is no longer a sequence.
 */
function mergedParameters(stored: WhiskAction, put: ActionPut, context: MergeContext): Parameter[] {
  const given = givenParameters(put, stored.parameters, context);
  if (put.exec !== undefined && isSequence(put.exec)) return sequenceParameters(put.exec);
  if (!isSequence(stored.exec)) return given ?? stored.parameters;
  return put.exec === undefined ? stored.parameters : (given ?? []);
}

function givenParameters(
  { parameters }: ActionPut,
  stored: readonly Parameter[],
  { inherited }: MergeContext,
): Parameter[] | undefined {
  return parameters && acceptGiven(parameters, { stored, inherited });
}

/** The parameters by which OpenWhisk's clients recognise a sequence. */
function sequenceParameters({ components }: SequenceExec): Parameter[] {
  return [{ key: '_actions', value: components }];
}

function withKind(annotations: readonly Parameter[], kind: string): Parameter[] {
  return mergeParameters(annotations, [{ key: 'exec', value: kind }]);
}

function checkInstances(put: ActionPut, context: MergeContext): void {
  const problem = instancesProblem(put.limits ?? {}, context.bounds);
  if (problem !== undefined) throw notAllowed(problem);
}

/** Checks the rules that combine kind, annotations and limits. Throws ApiError (400). */
function checked(put: ActionPut, context: MergeContext, action: WhiskAction): WhiskAction {
  const { annotations, exec } = action;
  const requirements = parameterValue(annotations, 'requirements');
  const warm = parameterValue(annotations, 'warm');
  const gpu = isSequence(exec) ? undefined : parameterValue(annotations, 'gpu');
  try {
    if (requirements !== undefined && exec.kind.startsWith('python:')) validateRequirements(requirements);
    if (warm !== undefined && !isSequence(exec)) readWarm(warm);
    if (gpu !== undefined) checkGpu(gpu, context);
  } catch (error) {
    throw notAllowed((error as Error).message);
  }
  // Without annotation `gpu` the stored limits, too, must keep to the bounds of CPU actions.
  const limits = put.delAnnotations?.includes('gpu') === true ? action.limits : (put.limits ?? {});
  const problem = limitsProblem(limits, gpu === undefined ? context.bounds : context.gpuBounds);
  if (problem !== undefined) throw notAllowed(problem);
  return action;
}

/** Throws an Error that describes the fault if annotation `gpu` is invalid. */
function checkGpu(value: JsonValue, { gpuNodes }: MergeContext): void {
  const annotation = readGpuAnnotation(value);
  const problem = gpuNodes.length === 0 ? undefined : capacityProblem(gpuNodes, annotation);
  if (problem !== undefined)
    throw new GpuAnnotationError(`Annotation 'gpu' asks for more than the cluster has: ${problem}.`);
}

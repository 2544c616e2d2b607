import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { isObject, objectsOf, sameJson, textOf, valueIn } from './values.js';

/** Names and kinds that a migration changes. */
export interface Renaming {
  /** The target's name of a namespace. */
  namespace(name: string): string;
  /** The target's kind for a kind of the source. */
  kind(kind: string): string;
}

/** Changes no name and no kind: the reading of entities at the target. */
export const noRenaming: Renaming = { namespace: (name) => name, kind: (kind) => kind };

/** `/ns/pkg/name`, `ns/pkg/name` or `{path, name}` as `/ns/pkg/name` of the target. */
function renamed(value: JsonValue | undefined, { namespace }: Renaming): string {
  const text = isObject(value) ? `${textOf(value.path)}/${textOf(value.name)}` : textOf(value);
  const [first = '', ...rest] = text.replace(/^\//, '').split('/');
  return ['', namespace(first), ...rest].join('/');
}

/**
 * Parameters without those that a read merged in from the package. A parameter with the package's value is left out,
 * too, since it changes nothing.
 */
function ownParameters(parameters: JsonValue | undefined, inherited: JsonValue | undefined): JsonObject[] {
  const above = new Map(objectsOf(inherited).map((one) => [one.key, one]));
  return objectsOf(parameters).filter((one) => !sameJson(one, above.get(one.key)));
}

/** Annotations without those that the server writes itself. */
function ownAnnotations(annotations: JsonValue | undefined, managed: string): JsonObject[] {
  return objectsOf(annotations).filter(({ key }) => key !== managed);
}

function common(entity: JsonObject): JsonObject {
  return { version: textOf(entity.version), publish: entity.publish === true };
}

/** The PUT of a package, or of a binding whose provider has the parameters `inherited`. */
export function packageBody(entity: JsonObject, inherited: JsonValue | undefined, renaming: Renaming): JsonObject {
  const { binding } = entity;
  const bound = isObject(binding) && Object.keys(binding).length > 0;
  return {
    ...common(entity),
    annotations: ownAnnotations(entity.annotations, 'binding'),
    parameters: ownParameters(entity.parameters, inherited),
    ...(bound && {
      binding: { namespace: renaming.namespace(textOf(binding.namespace)), name: textOf(binding.name) },
    }),
  };
}

/** The PUT of an action whose package has the parameters `inherited`. */
export function actionBody(entity: JsonObject, inherited: JsonValue | undefined, renaming: Renaming): JsonObject {
  const exec = isObject(entity.exec) ? entity.exec : {};
  const annotations = ownAnnotations(entity.annotations, 'exec');
  // Where the annotation is absent (older actions) the key is provided; a new action would get `false`.
  if (valueIn(annotations, 'provide-api-key') === undefined) annotations.push({ key: 'provide-api-key', value: true });
  const body = { ...common(entity), annotations, limits: entity.limits ?? {} };
  if (exec.kind === 'sequence') {
    const components = Array.isArray(exec.components) ? exec.components : [];
    return { ...body, exec: { kind: 'sequence', components: components.map((one) => renamed(one, renaming)) } };
  }
  const { code, main, image } = exec;
  return {
    ...body,
    parameters: ownParameters(entity.parameters, inherited),
    exec: {
      kind: renaming.kind(textOf(exec.kind)),
      ...(code !== undefined && { code }),
      ...(main !== undefined && { main }),
      ...(image !== undefined && { image }),
    },
  };
}

/** The PUT of a trigger. */
export function triggerBody(entity: JsonObject, renaming: Renaming): JsonObject {
  const annotations = objectsOf(entity.annotations).map((one) =>
    one.key === 'feed' && typeof one.value === 'string' ? { ...one, value: renamed(one.value, renaming) } : one,
  );
  return { ...common(entity), annotations, parameters: objectsOf(entity.parameters) };
}

/** The PUT of a rule. */
export function ruleBody(entity: JsonObject, renaming: Renaming): JsonObject {
  return {
    ...common(entity),
    annotations: objectsOf(entity.annotations),
    trigger: renamed(entity.trigger, renaming),
    action: renamed(entity.action, renaming),
  };
}

/** Whether the target's entity equals the result of a PUT. */
export function sameBody(wanted: JsonObject, found: JsonObject): boolean {
  return Object.entries(wanted).every(([field, value]) => {
    const other = found[field];
    if (field === 'annotations') return sameJson(byKey(value), byKey(other));
    if (field === 'parameters') return sameParameters(byKey(value), byKey(other));
    // The target may have limits that the source has not.
    if (field === 'limits' && isObject(value) && isObject(other)) {
      return Object.entries(value).every(([name, limit]) => sameJson(limit, other[name]));
    }
    return sameJson(value, other);
  });
}

function byKey(list: JsonValue | undefined): JsonObject {
  return Object.fromEntries(objectsOf(list).map((one) => [textOf(one.key), one]));
}

/** Compares keys only where the target has encrypted the values. */
function sameParameters(wanted: JsonObject, found: JsonObject): boolean {
  const keys = Object.keys(wanted);
  return (
    keys.length === Object.keys(found).length &&
    keys.every((key) => {
      const [one, other] = [wanted[key], found[key]];
      if (!isObject(one) || !isObject(other)) return false;
      const lockedHere = one.encryption === undefined && other.encryption !== undefined;
      return lockedHere ? one.init === other.init : sameJson(one, other);
    })
  );
}

/** The kinds of actions that the target runs. */
export class TargetKinds {
  /** Undefined if the target does not list its kinds. */
  private readonly accepted: Map<string, boolean> | undefined;

  /** `info` is the target's answer at `/`. */
  constructor(info: JsonValue) {
    if (!isObject(info) || !isObject(info.runtimes)) return;
    const entries = Object.values(info.runtimes).flatMap(objectsOf);
    this.accepted = new Map(entries.map(({ kind, deprecated }) => [textOf(kind), deprecated !== true]));
  }

  /**
   * The reason if an action of this kind cannot be migrated; undefined if it can, or if the target does not list its
   * kinds.
   */
  problem(kind: string): string | undefined {
    if (kind === 'sequence' || kind === 'blackbox' || this.accepted === undefined) return undefined;
    const remedy = `(--kind ${kind}=OTHER carries it as another kind)`;
    const accepted = this.accepted.get(kind);
    if (accepted === undefined) return `the target has no runtime for kind '${kind}' ${remedy}`;
    return accepted ? undefined : `the target no longer accepts kind '${kind}' ${remedy}`;
  }
}

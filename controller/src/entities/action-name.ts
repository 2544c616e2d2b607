import type { EntityReference } from '@gpuwhisk/common/entities/names';

/** An action's name, in parts. */
export interface ActionName {
  namespace: string;
  /** The package or binding that the path names; absent: the namespace's own action. */
  packageName?: string;
  name: string;
}

/** Splits `/ns/a`, `ns/a` or `/ns/pkg/a` into its parts; undefined unless there are two or three. */
export function parseActionName(fullName: string): ActionName | undefined {
  const parts = fullName.split('/').filter((part) => part !== '');
  const [namespace, second, third] = parts;
  if (namespace === undefined || second === undefined || parts.length > 3) return undefined;
  return third === undefined ? { namespace, name: second } : { namespace, packageName: second, name: third };
}

/** The form of the name that ActionResolver takes. */
export function actionNameOf({ path, name }: EntityReference): ActionName {
  const slash = path.indexOf('/');
  if (slash < 0) return { namespace: path, name };
  return { namespace: path.slice(0, slash), packageName: path.slice(slash + 1), name };
}

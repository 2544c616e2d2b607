import type { EntityReference } from '@gpuwhisk/common/entities/names';

/** An action's name, in parts. */
export interface ActionName {
  namespace: string;
  /** The package or binding that the path names; absent: the namespace's own action. */
  packageName?: string;
  name: string;
}

/** `/ns/a`, `ns/a`, `/ns/pkg/a`, … in parts; undefined if it has neither two nor three. */
export function parseActionName(fullName: string): ActionName | undefined {
  const parts = fullName.split('/').filter((part) => part !== '');
  const [namespace, second, third] = parts;
  if (namespace === undefined || second === undefined || parts.length > 3) return undefined;
  return third === undefined ? { namespace, name: second } : { namespace, packageName: second, name: third };
}

/** The name that the resolver takes. */
export function actionNameOf({ path, name }: EntityReference): ActionName {
  const slash = path.indexOf('/');
  if (slash < 0) return { namespace: path, name };
  return { namespace: path.slice(0, slash), packageName: path.slice(slash + 1), name };
}

// Namespaces of stored data, and the bytes that each has stored.
import type { DatabaseName } from './artifact-store.js';

/** Documents of database `gpu` that belong to a namespace, whose name is the second segment of their ids. */
const ownedInGpu: ReadonlySet<string> = new Set(['action-version', 'api', 'refused-record', 'training-job']);

/** The namespace whose data a document is, by the document's id; undefined for data of the platform, which counts for none. */
export function namespaceOfDocument(database: DatabaseName, id: string): string | undefined {
  const slash = id.indexOf('/');
  if (slash < 1 || database === 'subjects') return undefined;
  const first = id.slice(0, slash);
  if (database !== 'gpu') return first;
  const end = id.indexOf('/', slash + 1);
  return ownedInGpu.has(first) && end > slash + 1 ? id.slice(slash + 1, end) : undefined;
}

/** Bytes by namespace. */
export type NamespaceBytes = Map<string, number>;

/** Adds bytes, negative for those removed, to those of a namespace; undefined is the platform, for which nothing is counted. */
export function addBytes(to: NamespaceBytes, namespace: string | undefined, bytes: number): void {
  if (namespace !== undefined && bytes !== 0) to.set(namespace, (to.get(namespace) ?? 0) + bytes);
}

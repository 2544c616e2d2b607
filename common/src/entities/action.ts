import type { Parameter } from './parameters.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { ArtifactStore, StoredDocument } from '../store/artifact-store.js';
import { codeText, isReference, locateCode, isSequence, readStoredExec, writeExec } from './exec-codec.js';
import { readActionLimits, writeLimits } from './limits.js';
import { mostSmallBytes } from './large-code.js';
import { MalformedError, asString } from './malformed.js';
import { EntityTypeError } from './names.js';
import { readParameters, writeParameters } from './parameters.js';

/** An action's limits as OpenWhisk stores them: timeout ms, memory MB (MiB), logs MB (MiB). */
export interface ActionLimits {
  timeout: number;
  memory: number;
  logs: number;
  concurrency: number;
  instances?: number;
}

/** Where attached code lies; `mem:` names carry the bytes themselves (base64). */
export interface CodeAttachment {
  attachmentName: string;
  attachmentType: string;
  length?: number;
  digest?: string;
}

/**
 * Code for a runtime kind. `code` is the source text, or base64 of an archive when `binary`; the bytes of either if they are
 * large (large-code.ts); or where they lie (readActionCode fetches them).
 */
interface CodeExec {
  kind: string;
  code: string | Uint8Array | CodeAttachment;
  binary: boolean;
  main?: string;
}

/** A container image, with optional code that is given to it at init. */
export interface BlackboxExec {
  kind: 'blackbox';
  image: string;
  binary: boolean;
  code?: string | Uint8Array | CodeAttachment;
  main?: string;
}

/** A chain of actions, each a fully qualified name with a leading slash. */
export interface SequenceExec {
  kind: 'sequence';
  components: string[];
}

/** What an action runs. */
export type Exec = CodeExec | BlackboxExec | SequenceExec;

/** An action, decoded. `namespace` is `ns`, or `ns/pkg` for a packaged action. */
export interface WhiskAction {
  namespace: string;
  name: string;
  exec: Exec;
  parameters: Parameter[];
  limits: ActionLimits;
  version: string;
  publish: boolean;
  annotations: Parameter[];
  /** Epoch ms of the last write. */
  updated: number;
  /** The store's revision of the document this was read from. */
  revision: string;
}

/**
 * An action from its document; its code stays where it is (`exec.code` may be a reference).
 * Throws EntityTypeError if it is another entity, MalformedError if it cannot be understood.
 */
export function readAction(document: StoredDocument): WhiskAction {
  const { entityType, namespace, name, version, publish, updated } = document;
  if (entityType !== undefined && entityType !== 'action') {
    throw new EntityTypeError(`'${document._id}' is of type ${JSON.stringify(entityType)}, not an action`);
  }
  if (document.exec === undefined) throw new EntityTypeError(`'${document._id}' is not an action`);
  return {
    namespace: asString(namespace, 'namespace malformed'),
    name: asString(name, 'entity name malformed'),
    exec: readStoredExec(document.exec),
    parameters: readParameters(document.parameters, document._id),
    limits: readActionLimits(document.limits),
    version: asString(version, 'semantic version malformed'),
    publish: publish === true,
    annotations: readParameters(document.annotations),
    updated: typeof updated === 'number' ? updated : 0,
    revision: typeof document._rev === 'string' ? document._rev : '',
  };
}

/** The store's id of an action: `ns/name` or `ns/pkg/name`. */
export function actionId(action: Pick<WhiskAction, 'namespace' | 'name'>): string {
  return `${action.namespace}/${action.name}`;
}

/** The document of an action, as OpenWhisk stores it. `_rev` is there if the action has been stored before. */
export function actionDocument(action: WhiskAction): StoredDocument {
  return {
    _id: actionId(action),
    ...(action.revision !== '' && { _rev: action.revision }),
    ...fields(action, writeExec(action.exec)),
    entityType: 'action',
  };
}

/** The action as the API shows it, large code as ''. `code: false` leaves the code out, else it must be at hand. */
export function actionToApi(action: WhiskAction, options: { code: boolean }): JsonObject {
  const exec = writeExec(action.exec);
  if (!options.code) delete exec.code;
  return fields(action, exec);
}

function fields(action: WhiskAction, exec: JsonObject): { [field: string]: JsonValue } {
  return {
    namespace: action.namespace,
    name: action.name,
    exec,
    parameters: writeParameters(action.parameters),
    limits: writeLimits(action.limits),
    version: action.version,
    publish: action.publish,
    annotations: writeParameters(action.annotations),
    updated: action.updated,
  };
}

/** The action with the code taken out: what a cache may hold. */
export function withoutCode(action: WhiskAction): WhiskAction {
  const { exec } = action;
  return isSequence(exec) || exec.code === undefined ? action : { ...action, exec: { ...exec, code: '' } };
}

/**
 * The action with its code in `exec.code`, as text or, if it is large, as bytes; fetched if it lies beside the document.
 * Throws NoDocumentError if the attachment is gone.
 */
export async function withCode(store: ArtifactStore, action: WhiskAction): Promise<WhiskAction> {
  const { exec } = action;
  if (isSequence(exec) || !isReference(exec.code)) return action;
  return { ...action, exec: { ...exec, code: await fetchCode(store, actionId(action), exec) } };
}

/**
 * The code of a stored action: source text, or base64 when `binary`, '' where an image carries it; large code as its bytes.
 * Throws MalformedError for a document that is no action with code, NoDocumentError if the attachment is gone.
 */
export async function readActionCode(
  store: ArtifactStore,
  document: StoredDocument,
): Promise<{ code: string | Uint8Array; binary: boolean }> {
  const exec = readStoredExec(document.exec);
  if (isSequence(exec)) throw new MalformedError('a sequence has no code');
  return { code: await fetchCode(store, document._id, exec), binary: exec.binary };
}

async function fetchCode(
  store: ArtifactStore,
  id: string,
  exec: CodeExec | BlackboxExec,
): Promise<string | Uint8Array> {
  if (!isReference(exec.code)) return exec.code ?? '';
  const place = locateCode(exec.code);
  const bytes = 'bytes' in place ? place.bytes : (await store.getAttachment('whisks', id, place.attachmentName)).bytes;
  return bytes.length > mostSmallBytes ? bytes : codeText(bytes, exec.binary);
}

// Earlier versions of actions, kept when an update replaces them.
import { actionDocument, actionId, readAction } from '@gpuwhisk/common/entities/action';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { codeText, isReference, isSequence, locateCode } from '@gpuwhisk/common/entities/exec-codec';
import { mostSmallBytes } from '@gpuwhisk/common/entities/large-code';
import type { ArtifactStore, NamedAttachment, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';

/** Earlier versions of an action that are kept, at most. */
export const mostVersions = 10;
/** Documents read at once; two controllers that update one action may exceed the bound for a moment. */
const pageSize = 4 * mostVersions;

/** Start of the ids in database `gpu`. No entity's id has an empty segment, so that none is the start of another's. */
const prefixOf = (id: string): string => `action-version/${id}//`;
const keptId = (action: WhiskAction): string =>
  `${prefixOf(actionId(action))}${String(action.updated).padStart(15, '0')}-${action.version}`;

/** The last versions of each action before its present one, with code, parameters, limits and annotations. */
export class ActionVersions {
  constructor(private readonly store: ArtifactStore) {}

  /**
   * Keeps a stored action that is about to be replaced, and removes the oldest versions beyond the bound. Resolves once the
   * version would survive a power loss.
   */
  async keep(action: WhiskAction): Promise<void> {
    const attachments = await this.attachmentsOf(action);
    // Code that is lost, or was replaced meanwhile, leaves nothing to return to.
    if (attachments === undefined) return;
    const kept = { _id: keptId(action), action: actionDocument({ ...action, revision: '' }) };
    try {
      await this.store.put('gpu', kept, attachments);
    } catch (error) {
      // The update that kept it before has failed.
      if (!(error instanceof DocumentConflictError)) throw error;
    }
    const all = await this.documents(actionId(action));
    await this.remove(all.slice(0, Math.max(0, all.length - mostVersions)));
  }

  /** The versions before `action`, the newest first. Their code stays where it is. */
  async before(action: WhiskAction): Promise<WhiskAction[]> {
    const documents = await this.documents(actionId(action));
    // An update that failed has kept the present version.
    return documents
      .filter(({ _id }) => _id !== keptId(action))
      .map(actionIn)
      .reverse();
  }

  /** A version that `before` has listed, with its code. Throws NoDocumentError if it was removed meanwhile. */
  async withCode(action: WhiskAction): Promise<WhiskAction> {
    const { exec } = action;
    if (isSequence(exec) || !isReference(exec.code)) return action;
    const place = locateCode(exec.code);
    const bytes =
      'bytes' in place
        ? place.bytes
        : (await this.store.getAttachment('gpu', keptId(action), place.attachmentName)).bytes;
    const code = bytes.length > mostSmallBytes ? bytes : codeText(bytes, exec.binary);
    return { ...action, exec: { ...exec, code } };
  }

  /** Removes all versions of an action. */
  async forget(id: string): Promise<void> {
    await this.remove(await this.documents(id));
  }

  private async documents(id: string): Promise<StoredDocument[]> {
    const prefix = prefixOf(id);
    const documents = await this.store.list('gpu', { after: prefix, limit: pageSize });
    return documents.filter(({ _id }) => _id.startsWith(prefix));
  }

  private async remove(documents: readonly StoredDocument[]): Promise<void> {
    for (const { _id, _rev } of documents) {
      await this.store.delete('gpu', _id, String(_rev)).catch((error: unknown) => {
        // Another controller has removed it.
        if (!(error instanceof NoDocumentError || error instanceof DocumentConflictError)) throw error;
      });
    }
  }

  /** The code beside the document; undefined if it is not there. */
  private async attachmentsOf(action: WhiskAction): Promise<NamedAttachment[] | undefined> {
    const { exec } = action;
    if (isSequence(exec) || !isReference(exec.code)) return [];
    const place = locateCode(exec.code);
    if ('bytes' in place) return [];
    const name = place.attachmentName;
    try {
      return [{ name, ...(await this.store.getAttachment('whisks', actionId(action), name)) }];
    } catch (error) {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    }
  }
}

function actionIn(document: StoredDocument): WhiskAction {
  return { ...readAction(document.action as StoredDocument), revision: '' };
}

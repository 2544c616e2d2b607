import { malformedContent, tooLarge } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type {
  ArtifactStore,
  DatabaseName,
  NamedAttachment,
  StoredDocument,
} from '@gpuwhisk/common/store/artifact-store';
import { refuseConflict } from './subjects.js';

/** A document as it was sent. */
export interface RawDocument {
  document: StoredDocument;
  /** Undefined: those that it has stay. */
  attachment: NamedAttachment | undefined;
}

/**
 * A document from a request's body, with its attachment as CouchDB writes it inline:
 * `"_attachments": {"<name>": {"content_type", "data": "<base64>"}}`. Throws ApiError (400, 413).
 */
export function readRawDocument(body: JsonValue, id: string | undefined, maxAttachmentBytes: number): RawDocument {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  const { _attachments: attachments, ...fields } = body;
  const { _id: ownId = id, _rev: revision } = fields;
  if (typeof ownId !== 'string' || ownId === '') throw malformedContent("'_id' must be a string");
  if (id !== undefined && ownId !== id) throw malformedContent("'_id' must be the one of the path");
  if (revision !== undefined && typeof revision !== 'string') throw malformedContent("'_rev' must be a string");
  const attachment = attachments === undefined ? undefined : readAttachment(attachments);
  if (attachment !== undefined && attachment.bytes.length > maxAttachmentBytes) {
    throw tooLarge('attachment', attachment.bytes.length, maxAttachmentBytes);
  }
  return { document: { ...fields, _id: ownId }, attachment };
}

function readAttachment(value: JsonValue): NamedAttachment {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  const [first] = entries;
  if (first === undefined || entries.length > 1) throw malformedContent("'_attachments' must have one attachment");
  const [name, described] = first;
  const { content_type: contentType, data }: JsonObject = isJsonObject(described) ? described : {};
  if (name === '' || typeof contentType !== 'string' || typeof data !== 'string') {
    throw malformedContent("an attachment must have a name, 'content_type' and 'data'");
  }
  return { name, contentType, bytes: Buffer.from(data, 'base64') };
}

/**
 * Stores a document as it is, with its attachment in place of those that it had. Resolves with the new revision.
 * Throws ApiError (409).
 */
export function storeRawDocument(
  store: ArtifactStore,
  database: DatabaseName,
  { document, attachment }: RawDocument,
): Promise<string> {
  return store.put(database, document, attachment && [attachment]).catch(refuseConflict);
}

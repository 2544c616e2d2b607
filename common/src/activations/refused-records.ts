import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { Logger } from '../logging.js';
import type { ArtifactStore, StoredDocument } from '../store/artifact-store.js';
import { DocumentConflictError, NoDocumentError } from '../store/artifact-store.js';
import type { Clock } from '../system/clock.js';
import { approximateBytes } from './record-policy.js';

/** In database `gpu`: the prefix, and the id of the record. */
const prefix = 'refused-record/';
const attachmentName = 'record';
const pageSize = 200;

/** How much is kept of what the store refuses. */
export interface RefusedRecordBounds {
  /** Records, at most; beyond it the oldest go, the newest never. */
  maxRecords: number;
  /** What they take together, bytes, about. */
  maxBytes: number;
}

const defaultBounds: RefusedRecordBounds = { maxRecords: 1000, maxBytes: 256 * 1024 * 1024 };

/** A record that the store refused, as it is listed. */
export interface RefusedRecord {
  /** `namespace/activationId`. */
  id: string;
  /** When it was set aside, ms since the epoch. */
  refusedAt: number;
  /** The store's words. */
  reason: string;
  /** About what the record takes, bytes. */
  bytes: number;
}

/** Keeps the newest records that the store refuses for good, as attachments, whose bytes it takes whatever they say. */
export class RefusedRecords {
  /** Records that were kept since the start. */
  count = 0;
  private isRemoving = false;
  /** Others were kept while the oldest were being removed. */
  private hasMore = false;
  private readonly bounds: RefusedRecordBounds;

  constructor(
    private readonly store: ArtifactStore,
    private readonly clock: Clock,
    private readonly logger: Logger,
    bounds: Partial<RefusedRecordBounds> = {},
  ) {
    this.bounds = { ...defaultBounds, ...bounds };
  }

  /** Resolves once the record would survive a power loss. Rejects with what the store rejects with. */
  async keep(record: StoredDocument, reason: string): Promise<void> {
    const document = {
      _id: prefix + record._id,
      kind: 'refused-record',
      refusedAt: this.clock.now(),
      reason,
      bytes: approximateBytes(record),
    };
    const bytes = Buffer.from(JSON.stringify(record));
    try {
      await this.store.put('gpu', document, [{ name: attachmentName, contentType: 'application/json', bytes }]);
    } catch (error) {
      // An earlier try, whose answer was lost, has kept it.
      if (!(error instanceof DocumentConflictError)) throw error;
    }
    this.count++;
    this.logger.error({ record: record._id, reason }, 'a record that the store refuses was set aside');
    this.hasMore = true;
    if (!this.isRemoving) void this.removeWhileMore();
  }

  private async removeWhileMore(): Promise<void> {
    this.isRemoving = true;
    while (this.hasMore) {
      this.hasMore = false;
      await this.removeOldest();
    }
    this.isRemoving = false;
  }

  /** Removes the oldest beyond the bounds. Where that fails it is tried again with the next that is kept. */
  private async removeOldest(): Promise<void> {
    try {
      const kept = await allRefused(this.store);
      kept.sort((one, other) => other.refusedAt - one.refusedAt);
      let bytes = 0;
      for (const [index, record] of kept.entries()) {
        bytes += record.bytes;
        const isWithin = index < this.bounds.maxRecords && bytes <= this.bounds.maxBytes;
        if (index === 0 || isWithin) continue;
        this.logger.error({ record: record.id }, 'a refused record was removed, as newer ones were set aside');
        await deleteRefused(this.store, record.id);
      }
    } catch (error) {
      this.logger.error({ error: String(error) }, 'refused records beyond the bounds could not be removed');
    }
  }
}

/** Refused records by id, those behind `after`, `limit` of them at most. */
export async function listRefused(
  store: ArtifactStore,
  { after = '', limit }: { after?: string; limit: number },
): Promise<RefusedRecord[]> {
  const documents = await store.list('gpu', { after: prefix + after, limit });
  return documents.filter(({ _id: id }) => id.startsWith(prefix)).map(describe);
}

/** A record as it was refused. Throws NoDocumentError. */
export async function readRefused(store: ArtifactStore, id: string): Promise<JsonObject> {
  const { bytes } = await store.getAttachment('gpu', prefix + id, attachmentName);
  const record = JSON.parse(Buffer.from(bytes).toString('utf8')) as JsonValue;
  if (!isJsonObject(record)) throw new NoDocumentError(id);
  return record;
}

/** Deletes a refused record; one that is not there is gone already. Returns whether it was there. */
export async function deleteRefused(store: ArtifactStore, id: string): Promise<boolean> {
  try {
    const { _rev: revision } = await store.get('gpu', prefix + id);
    await store.delete('gpu', prefix + id, String(revision));
    return true;
  } catch (error) {
    if (error instanceof NoDocumentError || error instanceof DocumentConflictError) return false;
    throw error;
  }
}

async function allRefused(store: ArtifactStore): Promise<RefusedRecord[]> {
  const all: RefusedRecord[] = [];
  for (;;) {
    const after = all.at(-1)?.id;
    const page = await listRefused(store, { ...(after !== undefined && { after }), limit: pageSize });
    all.push(...page);
    if (page.length < pageSize) return all;
  }
}

function describe({ _id: id, refusedAt, reason, bytes }: StoredDocument): RefusedRecord {
  return { id: id.slice(prefix.length), refusedAt: Number(refusedAt), reason: String(reason), bytes: Number(bytes) };
}

const noResult: JsonObject = { error: 'The record was refused by the store.' };
const noLogs = 'The record was refused by the store.';

/** Records to be stored in place of one that is refused, the one that says more first. */
export function standInRecords(record: StoredDocument): StoredDocument[] {
  const { response } = record;
  const status = isJsonObject(response) ? response.statusCode : undefined;
  const kept = { ...record, logs: [noLogs], response: { statusCode: status ?? 0, result: noResult } };
  return [kept, { ...kept, annotations: [] }];
}

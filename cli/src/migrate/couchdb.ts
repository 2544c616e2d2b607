import type { JsonObject } from '@gpuwhisk/common/json';
import type { Server } from './http.js';
import { isObject, objectsOf, textOf } from './values.js';

/** Documents of one answer; each may have code in it. */
const pageRows = 100;

/** A database of a CouchDB server. All throw RefusedError and UnreachableError. */
export interface CouchDatabase {
  /** Documents there are, those that define views included. */
  count(): Promise<number>;
  /** All documents but those that define views, by id, or those whose id begins with `under`. */
  pages(under?: string): AsyncGenerator<JsonObject[]>;
  attachment(id: string, name: string): Promise<Buffer>;
}

/** The database `name` of a server, whose base is CouchDB's root. */
export function openCouchDatabase(server: Server, name: string): CouchDatabase {
  const root = encodeURIComponent(name);
  return {
    async count() {
      const info = await server.json('GET', root);
      return isObject(info) && typeof info.doc_count === 'number' ? info.doc_count : 0;
    },
    async *pages(under) {
      const query = new URLSearchParams({ include_docs: 'true', limit: String(pageRows) });
      if (under !== undefined) {
        query.set('startkey', JSON.stringify(under));
        query.set('endkey', JSON.stringify(`${under}\ufff0`));
      }
      for (;;) {
        const answer = await server.json('GET', `${root}/_all_docs?${query.toString()}`);
        const rows = isObject(answer) ? objectsOf(answer.rows) : [];
        yield rows.flatMap(({ id, doc }) => (isObject(doc) && !textOf(id).startsWith('_design/') ? [doc] : []));
        const last = rows.at(-1);
        if (last === undefined || rows.length < pageRows) return;
        query.set('startkey', JSON.stringify(last.id));
        query.set('skip', '1');
      }
    },
    attachment: (id, attachment) => server.bytes(`${root}/${encodeURIComponent(id)}/${encodeURIComponent(attachment)}`),
  };
}

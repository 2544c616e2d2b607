/**
 * CouchDB refused a request, gave no proper answer, or could not be reached: `status` is 0 then. `word` is CouchDB's own name
 * of the error, such as `bad_request`; undefined if something between answered.
 */
export class CouchError extends Error {
  override name = 'CouchError';
  constructor(
    message: string,
    readonly status: number,
    readonly word?: string,
  ) {
    super(message);
  }
}

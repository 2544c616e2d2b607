/** CouchDB refused a request, gave no proper answer, or could not be reached: `status` is 0 then. */
export class CouchError extends Error {
  override name = 'CouchError';
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

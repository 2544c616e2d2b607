/** Thrown when a store cannot be opened: another process has it, it is damaged, or the folder is not usable. */
export class StoreOpenError extends Error {
  override name = 'StoreOpenError';
}

/** Rejected by a write that did not become durable (disk full, input or output error), and after close. */
export class StoreWriteError extends Error {
  override name = 'StoreWriteError';
}

/**
 * The store refuses what it was given, and would do so again; of several documents, at least one. Others of them may have
 * been stored.
 */
export class StoreRefusedError extends StoreWriteError {
  override name = 'StoreRefusedError';
  constructor(
    message: string,
    /** For its size. */
    readonly tooLarge: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

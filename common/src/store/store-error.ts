/** Thrown when a store cannot be opened: another process has it, it is damaged, or the folder is not usable. */
export class StoreOpenError extends Error {
  override name = 'StoreOpenError';
}

/** Rejected by a write that did not become durable (disk full, input or output error), and after close. */
export class StoreWriteError extends Error {
  override name = 'StoreWriteError';
}

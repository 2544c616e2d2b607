/** Resources that were opened, to be closed in the reverse order. */
export class Opened {
  private closes: (() => Promise<unknown> | void)[] = [];

  /** Has `close` called when all is closed. */
  onClose(close: () => Promise<unknown> | void): void {
    this.closes.push(close);
  }

  /** Closes everything, also after one fails to close; then the first failure is thrown. A second call does nothing. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.closes.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Gives what `open` gives; where it fails, what was opened until then is closed. */
  static async during<Result>(open: (opened: Opened) => Promise<Result>): Promise<Result> {
    const opened = new Opened();
    try {
      return await open(opened);
    } catch (error) {
      await opened.close();
      throw error;
    }
  }
}

/** Resources that were opened, to be closed in the reverse order. */
export class Opened {
  private closes: (() => Promise<unknown> | void)[] = [];

  /** Registers `close` to be called when all resources are closed. */
  onClose(close: () => Promise<unknown> | void): void {
    this.closes.push(close);
  }

  /**
   * Closes everything, also after a resource fails to close; then throws the first failure. A second call does nothing.
   */
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

  /** Returns the result of `open`; if `open` fails, the resources that it has opened are closed. */
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

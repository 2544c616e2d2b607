/** Exit codes of OpenWhisk's wsk (a failed HTTP request exits with its status minus 256, as a byte). */
export const exitCodes = { general: 1, usage: 2, network: 3, notAllowed: 149, timedOut: 202 } as const;

/** How the top level reports a WskError. */
interface WskErrorOptions {
  exitCode?: number;
  /** Adds `Run 'wsk --help' for usage.` */
  showUsage?: boolean;
  /** False if the command itself has printed the error. */
  showMessage?: boolean;
  /** False if the message is printed without `error: `. */
  showPrefix?: boolean;
  /** The action ran and failed, or is still running: the answer has the record. */
  outcome?: 'application error' | 'still running';
}

/** An error that ends the command with an exit code and, usually, one line on stderr. */
export class WskError extends Error {
  readonly exitCode: number;
  readonly showUsage: boolean;
  readonly showMessage: boolean;
  readonly showPrefix: boolean;
  readonly outcome: WskErrorOptions['outcome'];

  constructor(message: string, options: WskErrorOptions = {}) {
    super(message);
    this.exitCode = options.exitCode ?? exitCodes.general;
    this.showUsage = options.showUsage ?? false;
    this.showMessage = options.showMessage ?? true;
    this.showPrefix = options.showPrefix ?? true;
    this.outcome = options.outcome;
  }
}

/** The text of any thrown value; messages of system errors have Go's word order. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message.replace(/^E[A-Z]+: (.*), (\w+) '([^']*)'$/, '$2 $3: $1');
}

/**
 * Puts `context` before an error's message. Exit code and visibility are the inner error's; usage is shown if either
 * error asks for it.
 */
export function wrapError(error: unknown, context: string, options: WskErrorOptions = {}): WskError {
  const message = `${context}: ${messageOf(error)}`;
  if (!(error instanceof WskError)) return new WskError(message, options);
  return new WskError(message, {
    exitCode: error.exitCode,
    showMessage: error.showMessage,
    showUsage: error.showUsage || (options.showUsage ?? false),
    outcome: error.outcome,
  });
}

/** A mistake in the command line that wsk reports with exit code 2. */
export function usageError(message: string): WskError {
  return new WskError(message, { exitCode: exitCodes.usage, showUsage: true });
}

/** A mistake in the command line that wsk reports with exit code 1. */
export function argumentError(message: string): WskError {
  return new WskError(message, { showUsage: true });
}

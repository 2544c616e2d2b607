import { pino } from 'pino';
import type { DestinationStream, Level, Logger as PinoLogger } from 'pino';

/** A pino logger. */
export type Logger = PinoLogger;

/** How a logger is made. */
export interface LoggerOptions {
  /** trace, debug, info, warn, error or silent. */
  level: Level | 'silent';
  /** Where lines go; default: standard output. */
  destination?: DestinationStream;
}

/** A logger of JSON lines with ISO times. */
export function createLogger(options: LoggerOptions): Logger {
  const settings = { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination);
}

/**
 * The logger of one request: every line carries the transaction id. `extraLogging` (header
 * `X-OW-EXTRA-LOGGING: on`) writes debug lines for this request whatever the level of `logger`.
 */
export function transactionLogger(logger: Logger, transactionId: string, extraLogging: boolean): Logger {
  const child = logger.child({ transid: transactionId });
  if (extraLogging && !child.isLevelEnabled('debug')) child.level = 'debug';
  return child;
}

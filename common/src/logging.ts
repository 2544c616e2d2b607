// The JSON logger, and the ring of last lines that the API shows.
import { pino } from 'pino';
import type { DestinationStream, Level, Logger as PinoLogger } from 'pino';

/** A pino logger. */
export type Logger = PinoLogger;

/** How a logger is made. */
interface LoggerOptions {
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

/** How much is remembered. */
interface LogRingBounds {
  maxLines: number;
  maxBytes: number;
}

/** What lines are wanted: those that meet every condition. */
interface LogQuery {
  /** Exactly this transaction id. */
  transactionId?: string;
  /** Contained in the line, whatever the case. */
  text?: string;
}

/** The last lines of the log, in memory: the oldest go first. Lines are passed on to `next`. */
export class LogRing implements DestinationStream {
  private lines: string[] = [];
  /** Lines before this one in `lines` are forgotten. */
  private first = 0;
  private bytes = 0;

  constructor(
    private readonly next: DestinationStream,
    private readonly bounds: LogRingBounds = { maxLines: 10_000, maxBytes: 8 * 1024 * 1024 },
  ) {}

  write(line: string): void {
    this.next.write(line);
    this.lines.push(line);
    this.bytes += line.length;
    while (this.lines.length - this.first > this.bounds.maxLines || this.bytes > this.bounds.maxBytes) {
      this.bytes -= this.lines[this.first]?.length ?? 0;
      this.lines[this.first++] = '';
    }
    if (this.first <= this.bounds.maxLines) return;
    this.lines = this.lines.slice(this.first);
    this.first = 0;
  }

  /** The lines that are remembered, oldest first, without line ends. */
  find({ transactionId, text }: LogQuery): string[] {
    const wanted = text?.toLowerCase();
    return this.lines
      .slice(this.first)
      .filter((line) => wanted === undefined || line.toLowerCase().includes(wanted))
      .filter((line) => transactionId === undefined || transactionOf(line) === transactionId)
      .map((line) => line.trimEnd());
  }
}

function transactionOf(line: string): string | undefined {
  if (!line.includes('"transid"')) return undefined;
  try {
    const { transid } = JSON.parse(line) as { transid?: unknown };
    return typeof transid === 'string' ? transid : undefined;
  } catch {
    // A line that is cut short names no namespace.
    return undefined;
  }
}

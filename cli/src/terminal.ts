import { stringify, type Json } from './json/json.js';
import { printable, printableJson } from './printable.js';

function colourful(stream: NodeJS.WriteStream): boolean {
  return stream.isTTY === true && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb';
}

function painted(text: string, code: number, stream: NodeJS.WriteStream): string {
  return colourful(stream) ? `\u001b[${code}m${text}\u001b[0m` : text;
}

/**
 * Prints to stdout, or to stderr for the record of a failed activation. Control characters other than tabs and line feeds
 * are left out, since names and logs are those of tenants.
 */
export interface Printer {
  print(text: string): void;
  /** Prints `value` indented by four, as wsk does, and a line end. */
  printJson(value: Json): void;
  bold(text: string): string;
  /** Clears the screen of a terminal. */
  clear(): void;
  /** The green `ok:` that starts a line of success. */
  readonly ok: string;
}

function printerTo(stream: NodeJS.WriteStream): Printer {
  const print = (text: string): void => void stream.write(printable(text, colourful(stream)));
  return {
    print,
    printJson: (value) => print(`${printableJson(stringify(value, 4))}\n`),
    bold: (text) => painted(text, 1, stream),
    clear: () => void stream.write('\u001b[H\u001b[2J'),
    get ok() {
      return painted('ok:', 32, stream);
    },
  };
}

/** Printer of results. */
export const stdout = printerTo(process.stdout);
/** Printer of errors and notes. */
export const stderr = printerTo(process.stderr);

/** Prints `error: <message>` on stderr. */
export function printError(message: string): void {
  stderr.print(`${painted('error: ', 31, process.stderr)}${message}\n`);
}

import { stringify, type Json } from '../json/json.js';
import { stdout } from '../terminal.js';
import type { HttpRequest, HttpResponse } from './transport.js';

/** `-v` prints requests and answers with bodies cut at 1,000 bytes, `-d` whole. */
export type TraceLevel = 'off' | 'verbose' | 'debug';

const shownBytes = 1000;

/** Prints the request as wsk -v does. */
export function traceRequest(request: HttpRequest, level: TraceLevel): void {
  if (level === 'off') return;
  stdout.print(`REQUEST:\n[${request.method}]\t${request.url}\nReq Headers\n`);
  printHeaders(Object.entries(request.headers));
  if (request.body !== undefined) stdout.print(`Req Body\n${hidePasswords(shown(request.body, level))}\n`);
}

/** Prints the answer as wsk -v does. */
export function traceResponse(response: HttpResponse, level: TraceLevel): void {
  if (level === 'off') return;
  stdout.print(`RESPONSE:Got response with code ${response.status}\nResp Headers\n`);
  const names = response.rawHeaders.filter((_, index) => index % 2 === 0);
  printHeaders(names.map((name, index) => [name, response.rawHeaders[2 * index + 1] ?? '']));
  stdout.print(`Response body size is ${Buffer.byteLength(response.body)} bytes\n`);
  const body = hidePasswords(shown(response.body, level));
  stdout.print(`Response body received:\n${body}\n`);
}

function printHeaders(headers: [string, string][]): void {
  const byName = new Map<string, Json[]>();
  for (const [name, value] of headers) {
    if (name.toLowerCase() === 'transfer-encoding') continue; // how it was sent, not what
    const canonical = name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
    byName.set(canonical, [...(byName.get(canonical) ?? []), value]);
  }
  const sorted = [...byName].sort(([a], [b]) => (a < b ? -1 : 1));
  stdout.print(`${stringify(new Map<string, Json>(sorted), 2)}\n`);
}

function shown(body: string, level: TraceLevel): string {
  const bytes = Buffer.from(body);
  if (level === 'debug' || bytes.length <= shownBytes) return body;
  stdout.print(`Body exceeds ${shownBytes} bytes and will be truncated\n`);
  return `${bytes.subarray(0, shownBytes).toString('utf8')}...`;
}

function hidePasswords(text: string): string {
  return text.replace(/"[Pp]assword":\s*".*"/g, '"password": "******"');
}

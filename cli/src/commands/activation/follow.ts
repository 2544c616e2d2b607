import { setTimeout as sleep } from 'node:timers/promises';
import { ownNamespace } from '../../args/qualified-name.js';
import { encodePath } from '../../client/transport.js';
import type { Client } from '../../client/client.js';
import { exitCodes, wrapError, WskError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type JsonMap } from '../../json/json.js';
import { parseJson } from '../../json/parse.js';
import { stderr } from '../../terminal.js';
import { logLines } from './activations.js';

/** Attempts to follow after a connection broke off without a line between them, and the time between two, ms. */
const mostAttempts = 10;
const againMs = 1000;

/** What has been printed of an activation's log. */
interface Place {
  /** Lines of the run's log that were printed or reported as dropped. */
  printed: number;
  /** Place in the log of the stream's next line. */
  next: number;
}

/**
 * Prints the lines of an activation by `print` as they are written, until it has ended. A broken connection is made again and
 * continues behind the last printed line.
 * @throws WskError if the activation is unknown, or the server stays out of reach.
 */
export async function followLogs(client: Client, id: string, print: (line: string) => void): Promise<void> {
  const place: Place = { printed: 0, next: 0 };
  const route = `activations/${encodePath(id)}/logs?follow=true`;
  for (let attempt = 1; ; attempt++) {
    const before = place.printed;
    place.next = 0;
    try {
      let problem: WskError | undefined;
      const answer = await client.follow(ownNamespace, route, ({ event, data }) => {
        const fields = asMap(parseJson(data));
        if (event === 'end') problem = endOf(fields);
        else take(event, fields, place, print);
        return event === 'end';
      });
      if (problem !== undefined) throw problem;
      // A server without this route gives the record's lines, which are all there are.
      if (answer !== undefined) logLines(answer).slice(place.printed).forEach(print);
      return;
    } catch (error) {
      if (place.printed > before) attempt = 1;
      if (!isPassing(error) || attempt >= mostAttempts)
        throw wrapError(error, `Unable to get logs for activation '${id}'`);
      await sleep(againMs);
    }
  }
}

function take(event: string, fields: JsonMap, place: Place, print: (line: string) => void): void {
  if (event === 'again') {
    stderr.print('The action runs again; its log begins again.\n');
    Object.assign(place, { printed: 0, next: 0 });
    return;
  }
  if (event === 'dropped') {
    const dropped = asNumber(fields.get('lines'));
    stderr.print(`${dropped} lines were dropped, as they were read too slowly.\n`);
    place.next += dropped;
    place.printed = Math.max(place.printed, place.next);
    return;
  }
  if (event !== 'lines') return;
  for (const line of asList(fields.get('lines'))) {
    place.next++;
    if (place.next <= place.printed) continue;
    place.printed = place.next;
    print(asText(line));
  }
}

/** The error that a stream ended with; undefined if the activation has ended. */
function endOf(fields: JsonMap): WskError | undefined {
  const status = asNumber(fields.get('status'));
  if (status === 200) return undefined;
  return new WskError(asText(fields.get('error')), { exitCode: status - 256 });
}

/** Whether another attempt may succeed: the server was out of reach, or stopped. */
function isPassing(error: unknown): boolean {
  return error instanceof WskError && (error.exitCode === exitCodes.network || error.exitCode === 503 - 256);
}

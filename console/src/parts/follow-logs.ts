// The lines of an activation while it runs.
import { useEffect, useState } from 'preact/hooks';
import { activationPath, apiUrl } from '../api-path.js';
import { eventReader } from '../events.js';
import { authorization, credentials } from '../session.js';

/** Lines that are kept of a running activation; its record has all of them. */
const mostLines = 50_000;
const againMs = 2000;
/** A stream that is silent for so long is taken for broken, ms; the controller sends a beat each 5 s. */
const silentMs = 15_000;

/** The last lines that a running activation has printed, and the number of those before them. */
export interface FollowedLines {
  lines: readonly string[];
  before: number;
}

const none: FollowedLines = { lines: [], before: 0 };

/** Follows the lines of a running activation. */
export function useLogs(id: string): FollowedLines {
  const [shown, setShown] = useState(none);
  useEffect(() => {
    const stopping = new AbortController();
    const follow = async (): Promise<void> => {
      while (!stopping.signal.aborted) {
        const known: string[] = [];
        let before = 0;
        await readEvents(id, stopping.signal, (event, given) => {
          if (event === 'again') {
            known.length = 0;
            before = 0;
          } else if (event === 'dropped') known.push(`(${String(given)} lines are left out until the activation ends)`);
          else if (event === 'lines' && Array.isArray(given)) for (const line of given) known.push(String(line));
          else return;
          before += known.splice(0, Math.max(0, known.length - mostLines)).length;
          if (!stopping.signal.aborted) setShown({ lines: [...known], before });
        }).catch(() => undefined);
        // The stream was cut, or there is nothing to follow yet: it begins with the first line again.
        await new Promise((resolve) => setTimeout(resolve, againMs));
      }
    };
    setShown(none);
    void follow();
    return () => stopping.abort();
  }, [id]);
  return shown;
}

/** Reads the stream of an activation's lines to its end. Rejects if it breaks off or is silent for `silentMs`. */
async function readEvents(
  id: string,
  signal: AbortSignal,
  take: (event: string, lines: unknown) => void,
): Promise<void> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), silentMs);
  try {
    const answer = await fetch(apiUrl(`${activationPath(id)}/logs?follow=true`), {
      headers: { Authorization: authorization() },
      credentials,
      signal: AbortSignal.any([signal, silent.signal]),
    });
    if (!answer.ok || answer.body === null) return;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const eventsIn = eventReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), silentMs);
      for (const { event, data } of eventsIn(value)) take(event, (data as { lines?: unknown }).lines);
    }
  } finally {
    clearTimeout(timer);
  }
}

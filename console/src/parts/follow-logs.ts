// The lines of an activation while it runs.
import { useEffect, useState } from 'preact/hooks';
import { eventReader } from '../events.js';
import { authorization, credentials } from '../session.js';

/** Lines that are kept of a running activation; its record has all of them. */
const mostLines = 50_000;
const againMs = 2000;

/** The lines that a running activation has printed until now. `isOver`: nothing is followed any more. */
export function useLogs(id: string, isOver: boolean): readonly string[] {
  const [lines, setLines] = useState<readonly string[]>([]);
  useEffect(() => {
    if (isOver) return undefined;
    const stopping = new AbortController();
    const follow = async (): Promise<void> => {
      while (!stopping.signal.aborted) {
        let known: string[] = [];
        await readEvents(id, stopping.signal, (event, given) => {
          if (event === 'again') known = [];
          else if (event === 'dropped') known.push(`(${String(given)} lines are left out until the activation ends)`);
          else if (event === 'lines' && Array.isArray(given)) known.push(...(given as string[]));
          else return;
          if (!stopping.signal.aborted) setLines(known.slice(-mostLines));
        }).catch(() => undefined);
        // The stream was cut, or there is nothing to follow yet: it begins with the first line again.
        await new Promise((resolve) => setTimeout(resolve, againMs));
      }
    };
    setLines([]);
    void follow();
    return () => stopping.abort();
  }, [id, isOver]);
  return lines;
}

/** Reads the stream of an activation's lines to its end. Rejects if it breaks off. */
async function readEvents(
  id: string,
  signal: AbortSignal,
  take: (event: string, lines: unknown) => void,
): Promise<void> {
  const answer = await fetch(`../api/v1/namespaces/_/activations/${id}/logs?follow=true`, {
    headers: { Authorization: authorization() },
    credentials,
    signal,
  });
  if (!answer.ok || answer.body === null) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const eventsIn = eventReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const { event, data } of eventsIn(value)) take(event, (data as { lines?: unknown }).lines);
  }
}

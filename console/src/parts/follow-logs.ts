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
        const fresh: string[] = [];
        await readLines(id, stopping.signal, (more) => {
          fresh.push(...more);
          if (!stopping.signal.aborted) setLines(fresh.slice(-mostLines));
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

/** Reads a stream of lines to its end. Rejects if it breaks off. */
async function readLines(id: string, signal: AbortSignal, take: (lines: readonly string[]) => void): Promise<void> {
  const answer = await fetch(`../api/v1/namespaces/_/activations/${id}/logs?follow=true`, {
    headers: { Authorization: authorization() },
    credentials,
    signal,
  });
  const isStream = (answer.headers.get('Content-Type') ?? '').startsWith('text/event-stream');
  if (!answer.ok || !isStream || answer.body === null) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const eventsIn = eventReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const { event, data } of eventsIn(value)) {
      const { lines } = data as { lines?: unknown };
      if (event === 'lines' && Array.isArray(lines)) take(lines as string[]);
    }
  }
}

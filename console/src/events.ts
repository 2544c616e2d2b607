// The stream of server-sent events of GET /api/v1/live.

/** An event of the stream. */
export interface LiveEvent {
  event: string;
  data: unknown;
}

/** Cuts a stream's text into events; text that is not whole yet is kept for the next call. */
export function eventReader(): (chunk: string) => LiveEvent[] {
  let rest = '';
  return (chunk) => {
    const parts = (rest + chunk).split('\n\n');
    rest = parts.pop() ?? '';
    return parts.flatMap((part) => {
      // JSON may contain U+2028 and U+2029, which `.` does not match.
      const [, event, data] = /^event: (\w+)\ndata: ([^]*)$/.exec(part) ?? [];
      return event === undefined || data === undefined ? [] : [{ event, data: JSON.parse(data) as unknown }];
    });
  };
}

/** The fields by which the controller tells entries of lists apart, the first that an entry has. */
const keyFields = ['uuid', 'activationId', 'id', 'container', 'invoker', 'name'] as const;

type Entry = Readonly<Record<string, unknown>>;

function keyOf(entry: Entry): string {
  for (const field of keyFields) {
    const value = entry[field];
    if (typeof value !== 'string') continue;
    const { namespace } = entry;
    return field === 'name' && typeof namespace === 'string' ? `${namespace}/${value}` : value;
  }
  return '';
}

/** A list after a change: entries keep their places, and new ones come last. Unchanged entries stay the same objects. */
export function changedList(list: readonly Entry[], set: readonly Entry[], gone: readonly string[]): Entry[] {
  const fresh = new Map(set.map((entry) => [keyOf(entry), entry]));
  const lost = new Set(gone);
  const kept = list.flatMap((entry) => {
    const key = keyOf(entry);
    if (lost.has(key)) return [];
    const other = fresh.get(key);
    fresh.delete(key);
    return [other ?? entry];
  });
  return [...kept, ...fresh.values()];
}

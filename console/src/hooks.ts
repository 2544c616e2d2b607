import { useEffect, useState } from 'preact/hooks';
import { follow, type Known } from './live.js';

/** What a path below /api/v1 answers now. */
export function useLive<Value>(path: string): Known<Value> {
  const [now, show] = useState<Known<Value>>({});
  useEffect(() => {
    const { shown, end } = follow(path);
    const forget = shown.subscribe((value) => show(value as Known<Value>));
    return () => {
      forget();
      end();
    };
  }, [path]);
  return now;
}

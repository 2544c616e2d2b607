import { useEffect, useRef, useState } from 'preact/hooks';

/** Code of an action, to be read or changed. Another `text` replaces what is shown. */
export function CodeEditor({
  text,
  kind,
  label,
  onChange,
}: {
  text: string;
  kind: string;
  label: string;
  /** Absent: the code is only read. */
  onChange?: (text: string) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const told = useRef(onChange);
  told.current = onChange;
  const [problem, setProblem] = useState('');
  const isRead = onChange === undefined;
  useEffect(() => {
    let isGone = false;
    let remove: (() => void) | undefined;
    import('./code-mirror.js').then(
      ({ showEditor }) => {
        if (isGone || host.current === null) return;
        const place = { host: host.current, text, kind, label };
        remove = showEditor(isRead ? place : { ...place, onChange: (changed) => told.current?.(changed) });
      },
      () => setProblem('The editor cannot be loaded. Load the page again.'),
    );
    return () => {
      isGone = true;
      remove?.();
    };
  }, [text, kind, label, isRead]);
  return problem === '' ? (
    <div class="editor" ref={host} />
  ) : (
    <p class="problem" role="alert">
      {problem}
    </p>
  );
}

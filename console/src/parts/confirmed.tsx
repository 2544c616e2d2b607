import { useId, useRef, useState } from 'preact/hooks';

/** A button whose work begins once it was confirmed. What the work rejects with is shown beside it. */
export function ConfirmedButton({
  name,
  label,
  question,
  work,
}: {
  name: string;
  /** Name for screen readers, which tells several such buttons apart. */
  label: string;
  /** What will happen. */
  question: string;
  work: () => Promise<unknown>;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  const [problem, setProblem] = useState('');
  const [isWorking, setWorking] = useState(false);
  const confirm = (): void => {
    dialog.current?.close();
    setProblem('');
    setWorking(true);
    work()
      .catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)))
      .finally(() => setWorking(false));
  };
  return (
    <>
      <button type="button" aria-label={label} disabled={isWorking} onClick={() => dialog.current?.showModal()}>
        {name}
      </button>
      {problem !== '' && (
        <span class="problem" role="alert">
          {problem}
        </span>
      )}
      <dialog ref={dialog} aria-labelledby={title}>
        <h2 id={title}>{label}</h2>
        <p>{question}</p>
        <div class="buttons">
          <button type="button" autofocus onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="button" class="firm" onClick={confirm}>
            {name}
          </button>
        </div>
      </dialog>
    </>
  );
}

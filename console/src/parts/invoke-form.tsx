import { useState } from 'preact/hooks';
import { activationPath } from '../api-path.js';
import { exchange, problemOf } from '../session.js';
import type { ActivationRecord } from '../activation-model.js';
import { hrefOf } from '../route.js';
import { Outcome } from './outcome.js';

/** Why the text is no input of a function; undefined if it is one. */
function inputProblem(text: string): string | undefined {
  if (text.trim() === '') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? undefined : 'The input must be a JSON object or a list.';
  } catch (error) {
    return `The input is no JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** What a call has led to. */
type Answered = { record: ActivationRecord } | { runs: string } | { problem: string };

const [looks, lookMs] = [25, 200];

/** The stored record, which has the logs; the answer itself if there is none after 5 s. */
async function withLogs(answered: ActivationRecord): Promise<ActivationRecord> {
  for (let look = 0; look < looks; look++) {
    const { status, body } = await exchange(activationPath(answered.activationId));
    if (status === 200) return body as ActivationRecord;
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
  return answered;
}

/** Calls a function and shows what comes of it. `path`: that of the action below /api/v1. */
export function InvokeForm({ path }: { path: string }) {
  const [input, setInput] = useState('{}');
  const [isRunning, setRunning] = useState(false);
  const [answered, setAnswered] = useState<Answered>();
  const wrong = inputProblem(input);
  const invoke = async (): Promise<Answered> => {
    const { status, body } = await exchange(`${path}?blocking=true`, { method: 'POST', body: input.trim() || '{}' });
    const { activationId, response } = (body ?? {}) as Partial<ActivationRecord>;
    // A function that fails answers 502 with its record.
    if (response !== undefined) return { record: await withLogs(body as ActivationRecord) };
    if (status === 202 && activationId !== undefined) return { runs: activationId };
    return { problem: problemOf(status, body).message };
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (wrong !== undefined || isRunning) return;
    setRunning(true);
    setAnswered(undefined);
    invoke()
      .catch((error: unknown): Answered => ({ problem: error instanceof Error ? error.message : String(error) }))
      .then(setAnswered)
      .finally(() => setRunning(false));
  };
  return (
    <>
      <form class="invoke" onSubmit={submit}>
        <label for="input">Input (JSON)</label>
        <textarea
          id="input"
          rows={5}
          spellcheck={false}
          value={input}
          aria-invalid={wrong !== undefined}
          aria-describedby="input-problem"
          onInput={(event) => setInput(event.currentTarget.value)}
        />
        <p id="input-problem" class="problem" role="alert">
          {wrong}
        </p>
        <button type="submit" disabled={wrong !== undefined || isRunning}>
          Invoke
        </button>
      </form>
      <p role="status">{isRunning ? 'It runs…' : answered === undefined ? '' : 'The answer is there.'}</p>
      {answered !== undefined && <Answer answered={answered} />}
    </>
  );
}

function Answer({ answered }: { answered: Answered }) {
  if ('problem' in answered) {
    return (
      <p class="problem" role="alert">
        {answered.problem}
      </p>
    );
  }
  if ('runs' in answered) {
    return (
      <p>
        It still runs, as <a href={hrefOf('activations', answered.runs)}>{answered.runs}</a>.
      </p>
    );
  }
  const { record } = answered;
  return (
    <section aria-label="Answer">
      <p>
        Activation <a href={hrefOf('activations', record.activationId)}>{record.activationId}</a>
      </p>
      <Outcome record={record} heading="h3" />
    </section>
  );
}

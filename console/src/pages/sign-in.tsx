import { useState } from 'preact/hooks';
import { endedBecause, signIn } from '../session.js';

/** Asks for a key. */
export function SignInPage() {
  const [problem, setProblem] = useState(endedBecause.value);
  const [isAsking, setAsking] = useState(false);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const key = new FormData(event.target as HTMLFormElement).get('key');
    setAsking(true);
    signIn(typeof key === 'string' ? key : '')
      .catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)))
      .finally(() => setAsking(false));
  };
  return (
    <main class="sign-in">
      <h1>gpuwhisk</h1>
      <form onSubmit={submit}>
        <label for="key">Key (UUID:SECRET)</label>
        <input id="key" name="key" type="password" autocomplete="off" spellcheck={false} required autofocus />
        <button type="submit" disabled={isAsking}>
          Sign in
        </button>
        <p class="problem" role="alert">
          {problem}
        </p>
      </form>
      <p>
        The key of a namespace, as in <code>WHISK_AUTH</code>, or an operator's. It stays in this page's memory.
      </p>
    </main>
  );
}

import { useCallback, useEffect, useState } from 'preact/hooks';
import { annotationOf, pathOf } from '../activation-model.js';
import type { Action, Brief } from '../activation-model.js';
import { now } from '../clock.js';
import { ago, duration } from '../format.js';
import { useLive } from '../hooks.js';
import { CodeEditor } from '../parts/code-editor.js';
import { bytesOf, download } from '../parts/download.js';
import { FunctionGpu } from '../parts/function-gpu.js';
import { InvokeForm } from '../parts/invoke-form.js';
import { Problem } from '../parts/problem.js';
import { RecentActivations } from '../parts/recent-activations.js';
import { ApiProblem, ask, session } from '../session.js';

/** One function: its code and versions, a form that calls it, its activations and what is known of it on GPUs. */
export function FunctionPage({ name }: { name: string }) {
  const path = `namespaces/_/actions/${pathOf(name)}`;
  const live = useLive<Action>(`${path}?code=false`);
  const recent = useLive<Brief[]>(`namespaces/_/activations?limit=10&name=${pathOf(name)}`);
  const [loaded, setLoaded] = useState<Action>();
  const [problem, setProblem] = useState('');
  const [hasDraft, setHasDraft] = useState(false);
  const load = useCallback(async () => {
    try {
      setLoaded((await ask(path)) as Action);
      setProblem('');
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  }, [path]);
  useEffect(() => {
    setLoaded(undefined);
    void load();
  }, [load]);
  const isKnown = live.value !== undefined;
  useEffect(() => {
    // The controller was away when the page was opened.
    if (isKnown && loaded === undefined) void load();
  }, [isKnown]);
  const present = live.value !== undefined && live.value.updated > (loaded?.updated ?? 0) ? live.value : loaded;
  return (
    <>
      <h1>{name}</h1>
      {problem !== '' && (
        <p class="problem" role="alert">
          The function cannot be shown: {problem}
        </p>
      )}
      {problem === '' && <Problem of={live} what="The function is not kept up to date" />}
      {loaded !== undefined && (
        <>
          <Settings action={loaded} />
          <Code
            key={`${name} ${loaded.version} ${loaded.updated}`}
            action={loaded}
            path={path}
            present={live.value}
            onSaved={setLoaded}
            onDraft={setHasDraft}
            reload={load}
          />
          <h2>Invoke</h2>
          <InvokeForm key={name} path={path} />
          <Versions name={name} present={present ?? loaded} hasDraft={hasDraft} onRestored={setLoaded} />
          <h2>Last activations</h2>
          <Problem of={recent} what="They cannot be shown" />
          <RecentActivations name={name} activations={recent.value} />
          {annotationOf(loaded, 'gpu') !== undefined && <FunctionGpu name={`/${session.value?.namespace}/${name}`} />}
        </>
      )}
    </>
  );
}

function Settings({ action }: { action: Action }) {
  const { exec, limits, version, updated, parameters = [] } = action;
  const shown = action.annotations.filter(({ key }) => key !== 'exec');
  return (
    <>
      <p>
        {exec.kind}
        {exec.image === undefined ? '' : ` ${exec.image}`}, version {version},{' '}
        <span title={new Date(updated).toISOString()}>changed {ago(updated, now())}</span>. Time limit{' '}
        {duration(limits.timeout ?? 0)}, memory {limits.memory} MB, logs {limits.logs} MB, {limits.concurrency} at a
        time in a container.
      </p>
      <details>
        <summary>
          Annotations ({shown.length}) and parameters ({parameters.length})
        </summary>
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ key, value }) => (
              <tr key={key}>
                <td>{key}</td>
                <td>
                  <code>{JSON.stringify(value)}</code>
                </td>
              </tr>
            ))}
            {parameters.map(({ key }) => (
              <tr key={`parameter ${key}`}>
                <td>parameter {key}</td>
                {/* Parameters may be secrets, which a screen must not show. */}
                <td>set</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}

/** What the code's bytes are, if they are no text. */
function bytesAreOf({ exec }: Action): string | undefined {
  if (exec.components !== undefined) return `A sequence of ${exec.components.join(', ')}.`;
  if (exec.code === undefined || exec.code === '') return `The image ${exec.image ?? ''} has the code.`;
  return undefined;
}

function Code({
  action,
  path,
  present,
  onSaved,
  onDraft,
  reload,
}: {
  action: Action;
  path: string;
  /** The function as it is stored now. */
  present: Action | undefined;
  onSaved: (action: Action) => void;
  /** Called with whether the editor has changes that are not saved. */
  onDraft: (hasDraft: boolean) => void;
  reload: () => Promise<void>;
}) {
  const { exec, version } = action;
  const [draft, setDraft] = useState(exec.code ?? '');
  const [isSaving, setSaving] = useState(false);
  const [problem, setProblem] = useState('');
  const isChanged = draft !== (exec.code ?? '');
  useEffect(() => onDraft(isChanged), [isChanged]);
  // What the stream has told may be older than the answer to a save.
  const other = present !== undefined && present.updated > action.updated ? present : undefined;
  const words = bytesAreOf(action);
  if (words !== undefined) {
    return (
      <>
        <h2>Code</h2>
        <p>{words}</p>
      </>
    );
  }
  if (exec.binary === true) return <BinaryCode action={action} />;
  const save = async (): Promise<void> => {
    setSaving(true);
    setProblem('');
    try {
      // The stream may lag by a second.
      const stored = (await ask(`${path}?code=false`)) as Action;
      const isExpected = stored.version === version || stored.version === other?.version;
      if (!isExpected)
        throw new Error(`Version ${stored.version} was saved meanwhile. Look at it, or save again to replace it.`);
      const { kind, main, image } = exec;
      // Members that are undefined are left out.
      const body = JSON.stringify({ exec: { kind, code: draft, main, image } });
      onSaved((await ask(`${path}?overwrite=true`, { method: 'PUT', body })) as Action);
    } catch (error) {
      const isConflict = error instanceof ApiProblem && error.status === 409;
      setProblem(
        isConflict
          ? 'Another version is being saved. Try again.'
          : error instanceof Error
            ? error.message
            : String(error),
      );
    } finally {
      setSaving(false);
    }
  };
  return (
    <>
      <h2>Code</h2>
      <CodeEditor text={exec.code ?? ''} kind={exec.kind} label={`Code of version ${version}`} onChange={setDraft} />
      {other !== undefined && (
        <p class="problem" role="alert">
          Version {other.version} was saved {ago(other.updated, now())}; the code above is of version {version}.
        </p>
      )}
      <p class="actions">
        <button type="button" disabled={!isChanged || isSaving} onClick={() => void save()}>
          {other === undefined ? 'Save' : `Save over version ${other.version}`}
        </button>
        {other !== undefined && (
          <button type="button" onClick={() => void reload()}>
            Show version {other.version}
            {isChanged ? ' and drop the changes' : ''}
          </button>
        )}
        <button type="button" onClick={() => download(`${action.name}${extensionOf(exec.kind)}`, draft, 'text/plain')}>
          Download
        </button>
      </p>
      <p role="status">
        {isSaving ? 'Saving…' : isChanged ? 'There are changes that are not saved.' : `Version ${version}.`}
      </p>
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

const extensionOf = (kind: string): string =>
  kind.startsWith('nodejs') ? '.js' : kind.startsWith('python') ? '.py' : '.txt';

function BinaryCode({ action }: { action: Action }) {
  const bytes = bytesOf(action.exec.code ?? '');
  const isZip = bytes[0] === 0x50 && bytes[1] === 0x4b;
  return (
    <>
      <h2>Code</h2>
      <p>
        {isZip ? 'A zip archive' : 'A binary file'} of {bytes.length} bytes, which is not shown.
      </p>
      <p>
        <button type="button" onClick={() => download(`${action.name}${isZip ? '.zip' : '.bin'}`, bytes)}>
          Download
        </button>
      </p>
    </>
  );
}

/** The versions that are kept, and the return to one of them. */
function Versions({
  name,
  present,
  hasDraft,
  onRestored,
}: {
  name: string;
  present: Action;
  /** Whether the editor has changes that are not saved, which a return to another version drops. */
  hasDraft: boolean;
  onRestored: (action: Action) => void;
}) {
  const path = `namespaces/_/versions/${pathOf(name)}`;
  const [versions, setVersions] = useState<Action[]>([]);
  const [seen, setSeen] = useState<Action>();
  const [said, setSaid] = useState({ problem: '', done: '' });
  const fail = (error: unknown): void =>
    setSaid({ problem: error instanceof Error ? error.message : String(error), done: '' });
  useEffect(() => {
    ask(path).then((found) => setVersions(found as Action[]), fail);
  }, [path, present.version, present.updated]);
  const look = (version: string): void => {
    ask(`${path}?version=${encodeURIComponent(version)}`).then((found) => setSeen((found as Action[])[0]), fail);
  };
  const restore = (version: string): void => {
    ask(`${path}?version=${encodeURIComponent(version)}`, { method: 'POST' }).then((action) => {
      const restored = action as Action;
      setSaid({ problem: '', done: `Version ${version} is back, as version ${restored.version}.` });
      setSeen(undefined);
      onRestored(restored);
    }, fail);
  };
  return (
    <>
      <h2>Versions</h2>
      <table class="versions">
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">Saved</th>
            <th scope="col">Kind</th>
            <th scope="col">Return</th>
          </tr>
        </thead>
        <tbody>
          {versions.map((one, at) => (
            <tr key={`${one.version} ${one.updated}`}>
              <td>{one.version}</td>
              <td title={new Date(one.updated).toISOString()}>{ago(one.updated, now())}</td>
              <td>{one.exec.kind}</td>
              <td>
                {at === 0 ? (
                  'present'
                ) : (
                  <>
                    <button type="button" onClick={() => look(one.version)}>
                      Show {one.version}
                    </button>{' '}
                    <button type="button" onClick={() => restore(one.version)}>
                      Roll back to {one.version}
                      {hasDraft ? ' and drop the changes' : ''}
                    </button>
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p role="status">{said.done}</p>
      {said.problem !== '' && (
        <p class="problem" role="alert">
          {said.problem}
        </p>
      )}
      {seen !== undefined && (
        <>
          <h3>Version {seen.version}</h3>
          {seen.exec.binary === true || seen.exec.code === undefined ? (
            <p>Its code is no text.</p>
          ) : (
            <CodeEditor text={seen.exec.code} kind={seen.exec.kind} label={`Code of version ${seen.version}`} />
          )}
        </>
      )}
    </>
  );
}

import { useState } from 'preact/hooks';
import { useLive } from '../hooks.js';
import { duration, percent } from '../format.js';
import type { GpuPolicy, PolicyTrial } from '../model.js';
import { Figure } from '../parts/figure.js';
import { OperatorsOnly } from '../parts/operators-only.js';
import { Problem } from '../parts/problem.js';
import { Table } from '../parts/table.js';
import { ask, session } from '../session.js';

/** The policy in force, what it has learned, and a trial of another one. */
export function PoliciesPage() {
  const policy = useLive<GpuPolicy>('gpu/policy');
  const known = policy.value;
  return (
    <>
      <h1>Policy</h1>
      <Problem of={policy} what="The policy cannot be shown" />
      {known !== undefined && (
        <>
          <p>
            <strong>{known.policy}</strong>
            {summaryOf(known)}. A task that cannot meet its SLO{' '}
            {known.admission === 'refuse' ? 'is refused' : 'runs as best effort'}.{' '}
            {known.decides ? 'This controller decides.' : 'Another controller decides.'}
          </p>
          <Setting policy={known} />
          <Inert parts={known.inert} />
          <Stages policy={known} />
          <Learned policy={known} />
          <h2>Try another policy</h2>
          {session.value?.isOperator === true ? (
            <TrialForm policy={known} />
          ) : (
            <OperatorsOnly what="Arrivals of all namespaces are replayed under another policy" />
          )}
        </>
      )}
    </>
  );
}

function summaryOf({ policy, choices }: GpuPolicy): string {
  const [base = ''] = policy.split(' ', 1);
  const summary = choices.policies[base];
  return summary === undefined ? '' : `: ${summary}`;
}

/** How the policy came to differ from the configured one, and what the platform has undone. */
function Setting({ policy: { configured, set, undone } }: { policy: GpuPolicy }) {
  return (
    <>
      {set !== undefined && (
        <p>
          It was set on {new Date(set.at).toLocaleString()}
          {set.by === undefined ? '' : ` by ${set.by}`}; configured is <strong>{configured}</strong>.{' '}
          <code>wsk gpu policy reset</code> puts that back.
        </p>
      )}
      {undone !== undefined && (
        <p class="problem">
          {undone.policy} was undone on {new Date(undone.at).toLocaleString()}: {undone.why}.
        </p>
      )}
    </>
  );
}

/** Parts of the policy without effect on this cluster, with what mends each. */
function Inert({ parts }: { parts: GpuPolicy['inert'] }) {
  if (parts.length === 0) return null;
  return (
    <ul aria-label="Parts without effect">
      {parts.map(({ stage, part, why, mend }) => (
        <li key={`${stage} ${why}`}>
          <strong>
            {stage} {part}
          </strong>{' '}
          has no effect: {why}. <code>{mend}</code>
        </li>
      ))}
    </ul>
  );
}

const sources = {
  configuration: 'configured',
  operator: 'set by an operator',
  policy: 'set by the policy',
  default: 'default',
} as const;

function Stages({ policy: { stages, settings, settingNotes } }: { policy: GpuPolicy }) {
  return (
    <>
      <h2>Stages and settings</h2>
      {Object.entries(stages).map(([stage, name]) => (
        <section key={stage}>
          <h3>
            {stage}: {name}
          </h3>
          <dl class="settings">
            {Object.entries(settings[stage] ?? {}).map(([setting, value]) => {
              const { meaning = '', source = 'default' } = settingNotes[setting] ?? {};
              return (
                <div key={setting}>
                  <dt>
                    <code>{setting}</code> {value}
                  </dt>
                  <dd>
                    {meaning} <small>({sources[source]})</small>
                  </dd>
                </div>
              );
            })}
          </dl>
        </section>
      ))}
    </>
  );
}

function Learned({ policy: { functions, sharedSets, shareChoices, models } }: { policy: GpuPolicy }) {
  const choices = Object.values(shareChoices).reduce((sum, one) => sum + one.choices, 0);
  const savedMs = Object.values(shareChoices).reduce((sum, one) => sum + one.savedMs, 0);
  return (
    <>
      <h2>Learned state</h2>
      <dl class="figures">
        <Figure name="Measured functions" value={functions} />
        <Figure name="Sets with measured shares" value={sharedSets} />
        <Figure
          name="Choices of shares"
          value={choices}
          note={savedMs > 0 ? `saved ${duration(savedMs)} of run time` : ''}
        />
      </dl>
      {models.length === 0 ? (
        <p>No predictor has been trained: the capacity model predicts slowdowns.</p>
      ) : (
        <Table
          label="Predictors"
          titles={['GPU', 'Mode', 'Version', 'Trained on', 'Trained at', 'Error']}
          rows={models.map(({ gpuType, mode, version, sampleCount, learnedAt, error, runs }) => ({
            key: `${gpuType} ${mode}`,
            cells: [
              gpuType,
              mode,
              version === 0 ? 'capacity model' : version,
              `${sampleCount} runs`,
              learnedAt === undefined ? '' : new Date(learnedAt).toLocaleString(),
              error === undefined ? 'not known' : `${percent(error)} (${runs ?? 0} runs)`,
            ],
          }))}
        />
      )}
    </>
  );
}

/** Names of settings and values in a text: `omega=1 gamma=1.5`. Throws an Error for another form. */
function settingsIn(text: string): Record<string, number> {
  const pairs = text
    .trim()
    .split(/[\s,]+/)
    .filter((part) => part !== '');
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, name, value] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(pair) ?? [];
      if (name === undefined) throw new Error(`'${pair}' is no setting: name=number is expected.`);
      return [name, Number(value)];
    }),
  );
}

/** Replays the arrivals of the last minutes under another policy, and compares. */
function TrialForm({ policy }: { policy: GpuPolicy }) {
  const { choices, stages } = policy;
  const [trial, setTrial] = useState<PolicyTrial | undefined>(undefined);
  const [problem, setProblem] = useState('');
  const [isRunning, setRunning] = useState(false);
  const run = async (form: FormData): Promise<void> => {
    const text = (name: string): string => {
      const value = form.get(name);
      return typeof value === 'string' ? value : '';
    };
    const changed = Object.keys(choices.stages)
      .map((stage): [string, string] => [stage, text(stage)])
      .filter(([, name]) => name !== '');
    const settings = settingsIn(text('settings'));
    const other = {
      base: text('base'),
      ...Object.fromEntries(changed),
      ...(Object.keys(settings).length > 0 && { settings }),
    };
    const body = JSON.stringify({ policy: other, minutes: Number(text('minutes')) });
    setTrial((await ask('gpu/policy/trials', { method: 'POST', body })) as PolicyTrial);
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setProblem('');
    setRunning(true);
    run(new FormData(event.target as HTMLFormElement))
      .catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)))
      .finally(() => setRunning(false));
  };
  return (
    <>
      <form class="trial" onSubmit={submit}>
        <label>
          Policy
          <select name="base">
            {Object.entries(choices.policies).map(([name, summary]) => (
              <option key={name} value={name} title={summary}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Arrivals of the last
          <select name="minutes">
            {[60, 30, 10, 5].map((minutes) => (
              <option key={minutes} value={minutes}>
                {minutes} minutes
              </option>
            ))}
          </select>
        </label>
        <details>
          <summary>Other stages and settings</summary>
          {Object.entries(choices.stages).map(([stage, names]) => (
            <label key={stage}>
              {stage}
              <select name={stage}>
                <option value="">as the policy</option>
                {names.map((name) => (
                  <option key={name} value={name}>
                    {name}
                    {stages[stage] === name ? ' (in force)' : ''}
                  </option>
                ))}
              </select>
            </label>
          ))}
          <label>
            Settings
            <input name="settings" placeholder="name=number" spellcheck={false} autocomplete="off" />
          </label>
        </details>
        <button type="submit" disabled={isRunning}>
          {isRunning ? 'Replaying' : 'Try'}
        </button>
      </form>
      <p class="problem" role="alert">
        {problem}
      </p>
      {trial !== undefined && <TrialResults trial={trial} />}
    </>
  );
}

function TrialResults({ trial: { arrivals, leftOut, gpus, results } }: { trial: PolicyTrial }) {
  return (
    <>
      <p role="status">
        {arrivals} arrivals were replayed on {gpus} GPUs or slices
        {leftOut === 0 ? '' : `; ${leftOut} were left out, as their function was never measured or needs several GPUs`}.
        The times are those that were learned.
      </p>
      <Table
        label="Comparison"
        titles={[
          'Policy',
          'Mean wait',
          'Longest 1 % of waits',
          'Mean time to result',
          'SLO missed',
          'Refused',
          'Stopped',
          'GPU hours',
        ]}
        rows={results.map((one, at) => ({
          key: `${at} ${one.policy}`,
          cells: [
            `${one.policy}${at === 0 ? ' (in force)' : ''}${one.problem === undefined ? '' : `: ${one.problem}`}`,
            duration(one.meanWaitMs),
            duration(one.p99WaitMs),
            duration(one.meanMs),
            `${one.missed} of ${one.withSlo}`,
            one.refused,
            one.stopped,
            one.gpuHours.toPrecision(3),
          ],
        }))}
      />
    </>
  );
}

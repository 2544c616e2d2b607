// What operators are told of policies: the choices there are, and what each setting means and comes from.
import { compositionOf } from './make-policy.js';
import type { PolicyChoice } from './make-policy.js';
import { policies } from './registry.js';
import { stages } from './stages.js';
import type { StageName } from './stages.js';

/** What a setting does, with its unit, by its name. */
export const settingMeanings: Readonly<Record<string, string>> = {
  alwaysDraws: '1: places are drawn at random in every mode; 0: in fast mode only',
  backfills: '1: a GPU that is kept for a task is lent to work that ends before; 0: it is not',
  bestEffortMs: 'shortest wait after which best effort is overdue, ms',
  bestEffortWaitMs: 'how long a best-effort request waits for a batch to fill, ms',
  busy: 'part of its time that an instance is to be busy',
  coolDownS: 'how long an instance that the forecast does not want may idle, s',
  countsExcess: '1: tasks are slowed down at least by what they fill beyond the GPU together; 0: by pairs alone',
  countWaiting: '1: strict work avoids places that waiting best effort will fill; 0: it does not',
  draws: 'places drawn at random in fast mode',
  fastAbove: 'fast mode begins with more waiting tasks than so many times the places',
  fastBelow: 'fast mode ends with fewer waiting tasks than so many times the places',
  firstBackOffMs: 'time until a task without a place is first tried again though nothing has ended, ms',
  firstSlowdown:
    'slowdown of two best-effort functions together while nothing is measured of one of them; 0: it is predicted',
  forgetS: 'time after which what spot machines have shown counts half, s',
  fullSlowdown:
    'slowdown of two best-effort functions together, one of which fills the GPU, while nothing is measured of the pair; 0: it is predicted',
  gamma: 'greatest sum of the limits on a GPU, as a fraction of its SMs',
  graceMs: 'how long a run that is stopped may go on, ms',
  idleS: 'how long an instance that is not wanted may idle, s',
  inSamples: 'seconds of fewer requests than one instance fewer would serve, after which one goes',
  keepAliveS: 'how long the last instance may idle, s',
  least: 'instances that a function keeps whose requests have stopped',
  leastShare: 'fraction of the SMs below which limits are not moved',
  leastSpareMs: 'by how much a run may take longer than predicted at least, ms',
  longestBackOffMs: 'longest time until a task without a place is tried again though nothing has ended, ms',
  longestFirst: '1: a task that would end after all others goes first; 0: it does not',
  marksRisk: '1: places where more degradation is measured than predicted come last; 0: they do not',
  maxExchanges: 'exchanges that are tried by prediction in one decision, at most',
  maxLater: 'sub-queues that are planned ahead for exchanges, at most',
  maxLoad: 'shares of one GPU that are given away, at most, tasks that are alone aside',
  maxLoadOver: 'the same for a namespace that holds more than its part while others have work',
  maxTries: 'sub-queues that a task is tried in by prediction, at most',
  memoryPart: 'part of the memory that is given away where processes share a place',
  minGain: 'work that a task must add to a GPU for running beside others, as a part of what a GPU does for one task',
  minMoveGain: 'part by which moved limits must lower the mean completion; 1: limits are never moved',
  minShareGain: 'part by which shares of the table must lower the mean completion',
  mostAtOnce: 'most machines that are asked for or given back at once',
  mostFailures: 'tasks without a place that a pass tries, at most',
  omega: 'greatest sum of the requests on a GPU, as a fraction of its SMs',
  outSamples: 'seconds of more requests than instances serve at their requests, after which one is launched',
  overduePart: 'part of the GPUs that overdue best effort takes at most while a strict task can meet its SLO',
  perRequest: 'cost of each instance that runs on the place already, in units of degradation',
  quantile: 'probability with which the instances are to suffice',
  recutAfter: 'windows in a row in which a device differs from the same target before it is cut',
  recutPart: 'part of the devices that may be cut at once',
  recutWeight: 'weight of the newest window in the average of requests',
  recutWindowS: 'seconds of a window, 1 to 59; the geometry is decided once a window',
  retryS: 'how long a market without a machine is not asked again, s',
  slots: 'tasks of one GPU at once, at most',
  spare: 'part by which a run may take longer than predicted',
  strictPart: 'part of its SLO that a strict run may take where best effort starts beside it; 0: any',
  surgeSamples: 'seconds of more requests than instances serve at their limits, after which one is launched',
  surplusS: 'how long a surplus of instances has to last before it is retired, s',
  takeEveryMiss: '1: shares of a miss of the table are taken even where no task is late without them; 0: they are not',
  throttleTo: "part of a function's limit that is left to it each time its neighbour suffers",
  tolerance: 'memory that tasks which come in an exchange may take more than those that go, as a part of the GPU',
  trainWeight: "weight of the workloads' degradation against the function's",
  trustS: 'time of service with which spot machines are trusted before any has served, s',
  urgentSlack: 'slack below which a strict task is urgent, in mean times alone of the waiting tasks',
  useOnDemand: '1: machines are rented on demand; 0: spot machines only',
  useSpot: '1: spot machines are rented; 0: machines on demand only',
  warmFirst: "1: a place where the function's instance idles comes first; 0: it does not",
  windowS: 'seconds whose requests are looked at',
};

/** Where the value of a setting comes from: the configuration (`gpu.policy`), the policy, or the stage's default. */
export type SettingSource = 'configuration' | 'policy' | 'default';

/** The source of the value of `setting` under a choice. Throws RangeError as `compositionOf` does. */
export function settingSource(choice: PolicyChoice, setting: string): SettingSource {
  const { base, settings: given = {} } = typeof choice === 'string' ? { base: choice } : choice;
  if (Object.hasOwn(given, setting)) return 'configuration';
  return Object.hasOwn(compositionOf(base).settings, setting) ? 'policy' : 'default';
}

/** Policies with their summaries, and the implementations of each stage. */
export function policyChoices(): {
  policies: Record<string, string>;
  stages: Partial<Record<StageName, string[]>>;
} {
  const summaries = Object.entries(policies).map(([name, { summary }]) => [name, summary]);
  const implementations = Object.entries(stages).map(([stage, entries]) => [stage, Object.keys(entries)]);
  return { policies: Object.fromEntries(summaries), stages: Object.fromEntries(implementations) };
}

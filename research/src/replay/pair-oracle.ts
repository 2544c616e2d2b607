// A policy of pairs that is given true slowdowns and lengths, to show what pairing can gain.
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { SlowdownPredictor, CoLocated } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { Start } from '@gpuwhisk/gpu/view/decision';
import { seenPlaces } from '@gpuwhisk/gpu/view/running';
import type { SeenPlace } from '@gpuwhisk/gpu/view/running';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { withTruth, type PolicyMaker } from './setting.js';

/** Tasks at the head of the order that are considered for a place. */
const window = 12;
/** Work that a GPU must do more with a second task, in whole GPUs. */
const leastGain = 0.02;
const fractions = shareClasses.map((percent) => percent / 100);
/** Shares are sums of tenths, which floating point does not hold exactly. */
const rounding = 1e-9;

/**
 * At most two tasks on a GPU, whose shares sum to at most the whole: the head of the order beside the partner and at the
 * shares with which the GPU does most work. The order is `longest` (for the makespan) or `shortest` first (for the mean).
 */
export function pairOracle(order: 'longest' | 'shortest'): PolicyMaker {
  return withTruth(({ predictorOf }) => ({
    name: `pairs, ${order} first`,
    decide(view) {
      const { waiting } = view;
      const sign = order === 'longest' ? -1 : 1;
      const left = waiting.toSorted((a, b) => sign * ((a.soloMs ?? 0) - (b.soloMs ?? 0)));
      const starts: Start[] = [];
      // Places beside others first, since an empty GPU serves any task.
      for (const gpu of seenPlaces(view).toSorted((a, b) => b.running.length - a.running.length)) {
        if (left.length === 0) break;
        for (const one of placed(gpu, left.slice(0, window), predictorOf(gpu))) {
          left.splice(left.indexOf(one.task), 1);
          starts.push({ task: one.task.id, gpu: gpu.id, share: one.share, reason: 'most work' });
        }
      }
      return { starts, refused: [], bestEffort: [], order: left.map(({ id }) => id), rejected: [] };
    },
  }));
}

interface Placed {
  task: Task;
  share: number;
}

/** What starts on a GPU now: of the tasks at the head, those with which it does most work. */
function placed(gpu: SeenPlace, head: readonly Task[], predictor: SlowdownPredictor): Placed[] {
  const [resident, another] = gpu.running;
  if (another !== undefined) return [];
  const rateOf = (set: readonly Placed[]): number => rate(set, predictor);
  const [first] = head;
  if (first === undefined) return [];
  let best: Placed[] = resident === undefined ? [{ task: first, share: 1 }] : [];
  let most = (resident === undefined ? 1 : rateOf([resident])) + leastGain;
  for (const task of resident === undefined ? head.slice(1) : head) {
    for (const share of fractions) {
      for (const own of resident === undefined ? fractions : [resident.share]) {
        if (share + own > 1 + rounding) continue;
        const found = rateOf([
          { task: resident?.task ?? first, share: own },
          { task, share },
        ]);
        if (found <= most) continue;
        most = found;
        best = [...(resident === undefined ? [{ task: first, share: own }] : []), { task, share }];
      }
    }
  }
  return best;
}

/** Solo time that a set works off in a unit of time. */
function rate(set: readonly Placed[], predictor: SlowdownPredictor): number {
  const clients = set.flatMap(({ task: { features }, share }): CoLocated[] => (features ? [{ features, share }] : []));
  return clients.reduce(
    (sum, one) =>
      sum +
      1 /
        predictor.slowdown(
          one,
          clients.filter((other) => other !== one),
        ),
    0,
  );
}

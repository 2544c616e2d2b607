// Training beside work with an SLO, whatever the policy: it comes last, and makes nothing late by prediction.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { firstQueueOn, memberOf, residentsOf, slowdownsOf } from '../algorithms/faashare/sub-queue.js';
import { PredictionCache } from '../stages/order/set-predictions.js';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import type { Decision, TaskRejection } from '../view/decision.js';
import { seenPlaces } from '../view/running.js';
import type { SeenPlace } from '../view/running.js';
import { deadlineAt } from '../view/view.js';
import type { SchedulingEvent, Task, View } from '../view/view.js';
import type { Policy } from './policy.js';

/** How long a training is held back, ms from its arrival: load that never ends must not keep it from running for ever. */
const mostHeldMs = 600_000;
/** When a training that is held back is looked at again though nothing happens, ms. */
const againMs = 1000;

/**
 * A policy under which training without an SLO gives way to work with one. It is not placed while a task waits that can still
 * meet its SLO, for at most ten minutes, nor on a GPU where it is predicted to make a running task miss its SLO. Which running
 * task gives way to another is decided by stage `preempt`. All else is as `policy` decides.
 */
export function trainingLast(policy: Policy, predictorOf: (gpu: GpuKind) => SlowdownPredictor): Policy {
  const predictions = new PredictionCache(predictorOf);
  return {
    ...policy,
    decide(view, event) {
      if (event.kind === 'tick' || event.kind === 'report' || !view.waiting.some(isTraining)) {
        return policy.decide(view, event);
      }
      const { tasks, held } = divided(view, predictions);
      const isOfHeld = event.kind === 'arrival' && held.some(({ task }) => task === event.task);
      const passed: SchedulingEvent = isOfHeld ? { kind: 'timer' } : event;
      return withHeld(policy.decide(withTasks(view, tasks), passed), held, view.at);
    },
  };
}

function isTraining({ class: kind, sloMs }: Task): boolean {
  return kind === 'training' && sloMs === undefined;
}

/** The tasks that the policy may place, those of training on GPUs where they make nothing late; and those held back. */
function divided(view: View, predictions: PredictionCache): { tasks: Task[]; held: TaskRejection[] } {
  const { at, waiting } = view;
  const strict = waiting.filter((one) => one.sloMs !== undefined && deadlineAt(one) > at).length;
  let places: readonly SeenPlace[] | undefined;
  const tasks: Task[] = [];
  const held: TaskRejection[] = [];
  for (const task of waiting) {
    if (!isTraining(task)) tasks.push(task);
    else if (strict > 0 && at - task.arrivedAt < mostHeldMs) {
      const reason = 'training waits: tasks that can meet their SLO go first';
      held.push({ task: task.id, what: 'tasks with an SLO', reason, numbers: { waiting: strict } });
    } else {
      places ??= seenPlaces(view);
      const late = places.filter((place) => makesLate(task, place, predictions, at));
      if (late.length > 0 && late.length === places.length) held.push(...late.slice(0, 1).map(rejectionOf(task)));
      else tasks.push(late.length === 0 ? task : without(task, late, view));
    }
  }
  return { tasks, held };
}

const rejectionOf =
  ({ id }: Task) =>
  ({ id: what, running }: SeenPlace): TaskRejection => {
    const reason = 'by prediction it would make running tasks miss their SLO, here and on all others';
    return { task: id, what, reason, numbers: { running: running.length } };
  };

/** Whether a task that starts on a GPU now is predicted to make one that runs there and is in time miss its SLO. */
function makesLate(task: Task, place: SeenPlace, predictions: PredictionCache, at: number): boolean {
  if (!place.running.some((one) => isPredictable(one.task))) return false;
  const queue = firstQueueOn(place, predictions.of(place), at);
  const residents = residentsOf(queue);
  const slowdowns = slowdownsOf(queue, [...residents, memberOf(task, queue)]);
  return residents.some(({ task: one, leftMs, startMs, deadline }, index) => {
    const endsAt = at + startMs + leftMs * (slowdowns[index] ?? 1);
    return isPredictable(one) && deadline < Infinity && endsAt > deadline;
  });
}

function isPredictable({ sloMs, soloMs = 0 }: Task): boolean {
  return sloMs !== undefined && soloMs > 0 && Number.isFinite(soloMs);
}

function without(task: Task, late: readonly SeenPlace[], { ledger: { ledger } }: View): Task {
  const shunned = new Set(late.map(({ id }) => id));
  const left = ledger.accounts().flatMap(({ id }) => (shunned.has(id) || task.allowed?.has(id) === false ? [] : [id]));
  return { ...task, allowed: new Set(left) };
}

/** A view with other waiting tasks; what it makes when it is read is still made then. */
function withTasks(view: View, waiting: readonly Task[]): View {
  return Object.create(view, { waiting: { value: waiting, enumerable: true } }) as View;
}

function withHeld(decision: Decision, held: readonly TaskRejection[], at: number): Decision {
  if (held.length === 0) return decision;
  return {
    ...decision,
    order: [...decision.order, ...held.map(({ task }) => task)],
    rejected: [...decision.rejected, ...held],
    wakeAt: Math.min(decision.wakeAt ?? Infinity, at + againMs),
  };
}

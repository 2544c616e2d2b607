import type { PredictionCache } from '@gpuwhisk/gpu/stages/order/set-predictions';
import {
  add,
  copyOf,
  firstQueueOn,
  hasRoom,
  laterQueueOn,
  memberOf,
  outlookOf,
  remove,
} from '@gpuwhisk/gpu/algorithms/faashare/sub-queue';
import type { Member, SubQueue } from '@gpuwhisk/gpu/algorithms/faashare/sub-queue';
import { mostRejections } from '@gpuwhisk/gpu/view/decision';
import type { Start, TaskRejection } from '@gpuwhisk/gpu/view/decision';
import type { Refusal } from '@gpuwhisk/gpu/stages/place/fact-filters';
import { deadlineAt } from '@gpuwhisk/gpu/view/view';
import type { Task, View } from '@gpuwhisk/gpu/view/view';
import { classFractions, sufficientShare } from '@gpuwhisk/gpu/stages/share/share';
import type { Planned, Planner } from '@gpuwhisk/gpu/stages/order/plan';
import { gangFor, obstacle } from '@gpuwhisk/gpu/algorithms/faashare/plan-places';
import { neededMiB, tasksMiB } from '@gpuwhisk/gpu/ledger/account';
import { seenPlaces } from '@gpuwhisk/gpu/view/running';
import type { SeenPlace } from '@gpuwhisk/gpu/view/running';

/** ε: what the memory of two groups may differ by, as a part of a GPU's. */
const tolerance = 0.02;

/**
 * FaaShare's algorithm 1 to the letter, for comparison: sub-queues are cut off the queue wherever the memory of a GPU is
 * full; SLOs are held against the time of execution alone, what was waited does not count; groups are exchanged as a whole,
 * and a task that would violate its SLO goes to any other sub-queue that has the memory. The sub-queues are started in
 * their order, each together where a GPU has room for it, else one by one. Nothing bounds waiting or tells namespaces
 * apart. Shares stay the smallest, unless `sharesOf` gives others for what starts.
 */
export function literalPlan(predictions: PredictionCache, sharesOf?: SharesOf): Planner {
  return { plan: ({ view, tasks }) => planned(view, tasks, predictions, sharesOf) };
}

/** The shares with which the members of a GPU's first sub-queue start, in their order. */
type SharesOf = (queue: SubQueue) => readonly number[];

function planned(
  view: View,
  waiting: readonly Task[],
  predictions: PredictionCache,
  sharesOf: SharesOf | undefined,
): Planned {
  const places = seenPlaces(view);
  const gpus = places.map((place) => firstQueueOn(place, predictions.of(place), view.at));
  const tasks = bySlo(places, waiting);
  const single = tasks.filter((task) => task.gpus === 1);
  const queues = partition(single, gpus, view.at);
  exchangeAll(queues);
  const rejected: TaskRejection[] = [];
  const starts = [...startQueues(queues, gpus, rejected), ...startGangs(tasks, gpus)];
  const started = new Set(starts.map(({ task }) => task));
  const inQueues = queues.flatMap(({ members }) => members.map(({ task }) => task));
  const order = [...new Set([...inQueues, ...tasks])].map(({ id }) => id);
  for (const task of tasks) if (!started.has(task.id)) rejected.push(...alternatives(task, gpus, undefined));
  const shared = sharesOf === undefined ? starts : withShares(starts, gpus, sharesOf);
  return { starts: shared, order: order.filter((id) => !started.has(id)), rejected };
}

/** The starts on one GPU with the shares that `sharesOf` gives. */
function withShares(starts: readonly Start[], gpus: readonly SubQueue[], sharesOf: SharesOf): Start[] {
  const shares = new Map<string, number>();
  for (const queue of gpus) {
    if (queue.members.length === 0) continue;
    const given = sharesOf(queue);
    for (const [at, { task }] of queue.members.entries()) {
      const share = given[at];
      if (task.gpus === 1 && share !== undefined) shares.set(task.id, share);
    }
  }
  return starts.map((start) => ({ ...start, share: shares.get(start.task) ?? start.share }));
}

/** Line 1, each task once; best effort comes last. */
function bySlo(places: readonly SeenPlace[], waiting: readonly Task[]): Task[] {
  const running = new Set(places.flatMap((place) => place.running.map(({ task }) => task.id)));
  const tasks = [...new Map(waiting.map((task) => [task.id, task])).values()].filter(({ id }) => !running.has(id));
  const slo = ({ sloMs = Infinity }: Task): number => (sloMs > 0 ? sloMs : 0);
  const before = (one: number, other: number): number => (one < other ? -1 : Number(one > other));
  return tasks.sort((one, other) => before(slo(one), slo(other)) || one.arrivedAt - other.arrivedAt);
}

/** Lines 2 to 8. Where a task may not go is seen to when it starts. */
function partition(tasks: readonly Task[], gpus: readonly SubQueue[], at: number): SubQueue[] {
  const roomOf = ({ place }: SubQueue): number => tasksMiB(place.account);
  const largest = [...gpus].sort((one, other) => roomOf(other) - roomOf(one))[0];
  const queues: SubQueue[] = [];
  if (largest === undefined) return queues;
  const { account } = largest.place;
  const left = tasks.filter((task) => neededMiB(task, account) <= roomOf(largest));
  while (left.length > 0) {
    const queue = laterQueueOn(largest, at);
    for (let [next] = left; next !== undefined && neededMiB(next, account) <= queue.fork.availableMiB; [next] = left) {
      add(queue, executing(next, queue));
      left.shift();
    }
    // To the next sub-queue, which is another GPU's.
    while (queue.members.length > 1 && outlookOf(queue).late > 0) {
      const tail = queue.members.at(-1);
      if (tail === undefined) break;
      remove(queue, tail);
      left.unshift(tail.task);
    }
    queues.push(queue);
  }
  return queues;
}

/** A task whose SLO is held against its execution. */
function executing(task: Task, queue: SubQueue): Member {
  const { sloMs = Infinity } = task;
  const executed = { ...task, arrivedAt: queue.startsAt };
  const share = task.share ?? smallestShare(executed, queue);
  return { ...memberOf(executed, queue, share), task, deadline: queue.startsAt + sloMs };
}

/** The smallest share with which a task meets its SLO in a sub-queue (line 4). */
function smallestShare(task: Task, { predictions, startsAt }: SubQueue): number {
  const { soloMs, startMs = 0, features, maxShare = 1 } = task;
  if (task.sloMs === undefined || soloMs === undefined || features === undefined) return sufficientShare(task);
  const budgetMs = deadlineAt(task) - startsAt - startMs;
  return Math.min(
    maxShare,
    classFractions.find((share) => soloMs * predictions.alone(features, share) <= budgetMs) ?? 1,
  );
}

/** Lines 9 to 13. */
function exchangeAll(queues: readonly SubQueue[]): void {
  for (const [at, queue] of [...queues.entries()].reverse()) {
    for (const other of queues.slice(at + 1)) exchange(queue, other, queues);
  }
}

/** Lines 14 to 41. */
function exchange(first: SubQueue, second: SubQueue, queues: readonly SubQueue[]): void {
  const { account } = first.place;
  const slackMiB = tolerance * tasksMiB(account);
  const matches = first.members.flatMap((one) =>
    second.members
      .filter(
        ({ leftMs, task }) =>
          leftMs < one.leftMs && neededMiB(task, account) <= neededMiB(one.task, account) + slackMiB,
      )
      .map((other) => [one, other] as const),
  );
  const leaving = [...new Set(matches.map(([one]) => one))];
  const coming = [...new Set(matches.map(([, other]) => other))];
  const memory = (members: readonly Member[]): number =>
    members.reduce((total, { task }) => total + neededMiB(task, account), 0);
  if (leaving.length === 0 || Math.abs(memory(leaving) - memory(coming)) > slackMiB) return;
  const [one, other] = [swapped(first, leaving, coming), swapped(second, coming, leaving)];
  for (const [queue, from, members] of [
    [one, second, coming],
    [other, first, leaving],
  ] as const) {
    const { endsAt } = outlookOf(queue);
    const late = members.find((member) => (endsAt[queue.members.indexOf(member)] ?? -Infinity) > member.deadline);
    if (late === undefined) continue;
    const to = queues.find((one) => one !== from && neededMiB(late.task, account) <= one.fork.availableMiB);
    if (to === undefined) continue;
    remove(from, late);
    add(to, late);
    return;
  }
  if (one.fork.availableMiB < 0 || other.fork.availableMiB < 0) return;
  const before = outlookOf(first).sumAt + outlookOf(second).sumAt;
  if (outlookOf(one).sumAt + outlookOf(other).sumAt >= before) return;
  Object.assign(first, one);
  Object.assign(second, other);
}

function swapped(queue: SubQueue, leaving: readonly Member[], coming: readonly Member[]): SubQueue {
  const copy = copyOf(queue);
  for (const member of leaving) remove(copy, member);
  for (const member of coming) add(copy, member);
  return copy;
}

/** A GPU that has room for all of a sub-queue gets it, the one with the fewest tasks first; else each task finds its own. */
function startQueues(queues: readonly SubQueue[], gpus: readonly SubQueue[], rejected: TaskRejection[]): Start[] {
  return queues.flatMap(({ members }) => {
    const byBusy = [...gpus].sort((one, other) => one.fork.busy - other.fork.busy);
    const together = byBusy.find((gpu) => {
      const tried = copyOf(gpu);
      return members.every((member) => hasRoom(tried, member.task) && (add(tried, member), true));
    });
    return members.flatMap((member) => {
      const gpu = together ?? byBusy.find((one) => hasRoom(one, member.task));
      if (gpu === undefined) return [];
      rejected.push(...alternatives(member.task, gpus, gpu));
      add(gpu, member);
      const reason = together === undefined ? 'there is room for it' : 'there is room for its sub-queue';
      return [{ task: member.task.id, gpu: gpu.place.id, share: member.share, reason }];
    });
  });
}

/** Why a task is not on the other GPUs, `chosen` aside: first of those that have room for it. */
function alternatives(task: Task, gpus: readonly SubQueue[], chosen: SubQueue | undefined): TaskRejection[] {
  const able: TaskRejection[] = [];
  const refused: TaskRejection[] = [];
  for (const gpu of gpus) {
    if (able.length === mostRejections) break;
    if (gpu === chosen) continue;
    const identity = { task: task.id, what: gpu.place.id };
    const refusal = obstacle(gpu.fork, task);
    if (refusal === undefined) able.push({ ...identity, ...passedOver(task, gpu, chosen) });
    else if (refused.length < mostRejections) refused.push({ ...identity, ...refusal });
  }
  return [...able, ...refused].slice(0, mostRejections);
}

function passedOver(
  { gpus: needed }: Task,
  { fork: { busy: running } }: SubQueue,
  chosen: SubQueue | undefined,
): Refusal {
  if (chosen === undefined) return { reason: 'too few alike on its node', numbers: { needed } };
  const numbers = { running, chosenRunning: chosen.fork.busy };
  if (running < chosen.fork.busy) return { reason: 'no room for the whole sub-queue of the task', numbers };
  if (running > chosen.fork.busy) return { reason: 'more tasks are there than on the chosen one', numbers };
  return { reason: 'as good as the chosen one, which is listed first', numbers };
}

/** The paper has no task on several GPUs: they come last, all or none. */
function startGangs(tasks: readonly Task[], gpus: readonly SubQueue[]): Start[] {
  return tasks.flatMap((task) => {
    if (task.gpus === 1) return [];
    const gang = gangFor(
      gpus.filter((gpu) => hasRoom(gpu, task)),
      task,
    );
    if (gang === undefined) return [];
    const members = gang.map((gpu) => {
      const member = executing(task, gpu);
      add(gpu, member);
      return member;
    });
    const [gpu, ...alsoOn] = gang.map((one) => one.place.id) as [string, ...string[]];
    const share = Math.min(...members.map((member) => member.share));
    return [{ task: task.id, gpu, alsoOn, share, reason: 'there is room on all that it needs' }];
  });
}

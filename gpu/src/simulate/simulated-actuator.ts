import { geometriesOf, geometryFault, profilesOf, sliceChanges } from '../stages/geometry/mig-profiles.js';
import { cutProblem } from '../stages/geometry/cut-problem.js';
import type { Action, Actuator, Start } from '../view/decision.js';
import { classAtOrAbove } from '../view/shares.js';
import type { OpenLedger } from '../ledger/used-places.js';
import type { DeviceState, InstanceState, NodeState, Task } from '../view/view.js';
import { beginBatch, hostOf, processesAmong } from './simulated-batches.js';
import {
  instanceOf,
  startAmong,
  advance,
  heldMiB,
  instancesOn,
  rateAll,
  simulatedGpu,
  slicePlace,
  slicesOf,
} from './simulated-gpu.js';
import type { ReplayJob, RunTotals } from './replay.js';
import { SimulatedLedger } from './simulated-ledger.js';
import { SimulatedMachines } from './simulated-provider.js';
import { Timers } from './simulated-times.js';
import { StartPools } from './start-pool.js';
import type { EndedRun, SimulatedParts, Whole } from './simulated-parts.js';
import type { Training } from './simulated-workload.js';
import type { Loading, Run, SimulatedGpu, SimulatedInstance, SimulatedPlace } from './simulated-gpu.js';

/** Carries actions out on simulated GPUs, in virtual time. */
export class SimulatedActuator implements Actuator {
  now = 0;
  /** All GPUs and slices. */
  gpus: readonly SimulatedGpu[];
  /** Those that work may be put on. */
  open: readonly SimulatedGpu[];
  private readonly nodeStates = new Map<string, NodeState>();
  /** Nodes that get no more tasks: given back, or about to be taken away. */
  private readonly leaving = new Set<string>();
  private readonly givenBack = new Set<string>();
  private readonly devices = new Map<string, Whole>();
  /** By instance, shares that were moved. */
  private readonly moved = new Map<string, { request: number; limit: number; whileBusy: boolean }>();
  readonly timers = new Timers();
  private ended: EndedRun[] = [];
  private readonly accounts = new SimulatedLedger();
  private made = 0;
  private readonly pools: StartPools | undefined;
  /** Rented machines; undefined: there is no provider. */
  readonly machines: SimulatedMachines | undefined;

  constructor(private readonly parts: SimulatedParts) {
    this.gpus = parts.places.flatMap((place) => this.placed(place));
    this.open = this.gpus;
    this.pools = parts.pool && new StartPools(parts.pool);
    this.machines = parts.provider && new SimulatedMachines(parts.provider);
    for (const { id, gpu } of parts.workloads ?? []) {
      if (!this.gpus.some((one) => one.id === gpu))
        throw new RangeError(`workload ${id} is on ${gpu}: there is no such GPU`);
    }
    for (const gpu of this.gpus) if (gpu.trainings.length > 0) rateAll(gpu, parts.truth);
  }

  /** The ledger of all GPUs and slices; what decisions have held is released. */
  get ledger(): OpenLedger {
    return this.accounts.open(this.gpus, this.now);
  }

  /** The run of a task; undefined: it does not run. */
  runOf(task: string): Run | undefined {
    for (const { runs } of this.gpus) {
      const run = runs.find((one) => one.task.id === task);
      if (run !== undefined) return run;
    }
    return undefined;
  }

  get nodes(): NodeState[] {
    return [...this.nodeStates.values()];
  }

  /** Those that may be used. */
  get instances(): InstanceState[] {
    return this.gpus.flatMap(instancesOn);
  }

  /** The workloads, with the node of each. */
  get trainings(): { training: Training; node: string }[] {
    return this.gpus.flatMap(({ trainings, node }) => trainings.map((training) => ({ training, node })));
  }

  get deviceStates(): DeviceState[] {
    return Array.from(this.devices, ([id, { place, wanted, cutting, refused }]) => {
      const there = this.open.filter(({ device }) => device === id);
      const mode = there[0]?.mode ?? place.mode;
      const { node, type } = place;
      const mayNotCut = this.problemOf(id, place);
      const profiles = wanted ?? cutting;
      return {
        id,
        node,
        type,
        mode,
        geometries: geometriesOf(type),
        places: there.map(({ id: one, profile }) => ({ id: one, ...(profile && { profile }) })),
        ...(mayNotCut !== undefined && { mayNotCut }),
        ...(profiles === undefined ? refused && { cut: refused } : { cut: { profiles } }),
      };
    });
  }

  /**
   * Starts a job on a GPU with a share; `leftMs`: its time alone. One that joins an instance is in the next batch there.
   * Throws Error where that cannot be.
   */
  start(
    { job, task }: { job: ReplayJob; task: Task },
    { gpu: id, share, request, choice }: Pick<Start, 'gpu' | 'share' | 'request' | 'choice'>,
    leftMs: number,
    warmMs: number | undefined,
  ): void {
    const gpu = this.open.find((one) => one.id === id);
    if (gpu === undefined) throw new Error(`starts ${task.id} on ${id}: there is no such GPU`);
    const host = choice?.placement?.joins === true ? hostOf(gpu, task, choice.reuses) : undefined;
    if (host !== undefined) {
      const batched = { startMs: 0, startLeftMs: 0, slowdown: 1, besideMs: new Map(), waits: true };
      gpu.runs = [...gpu.runs, { job, task: job.task, ...host, startedAt: this.now, leftMs, ...batched }];
      return;
    }
    const taken = heldMiB(gpu);
    if (taken + task.memoryMiB > gpu.memoryMiB) throw new Error(`puts ${task.id} on ${id}, which lacks the memory`);
    if (gpu.mode === 'exclusive' && gpu.running.length > 0) {
      throw new Error(`puts ${task.id} on ${id}, which is not free`);
    }
    const begun = gpu.idle && startAmong(gpu.idle, task, share, gpu.memoryMiB - taken);
    if (begun) gpu.idle = begun.idle;
    const instance = begun?.reused?.id ?? this.newId();
    const startMs = begun?.reused !== undefined && warmMs !== undefined ? warmMs : this.startMsOf(job, id);
    const given = begun?.share ?? share;
    const moved = this.moved.get(instance);
    // As `shareInInstance` has it.
    const decided = request === undefined ? given : Math.min(given, share);
    const limit = Math.min(given, moved?.limit ?? decided);
    const run: Run = {
      job,
      task: job.task,
      instance,
      class: given,
      share: limit,
      request: Math.min(moved?.request ?? request ?? limit, limit),
      startedAt: this.now,
      startMs,
      startLeftMs: startMs,
      leftMs,
      slowdown: 1,
      besideMs: new Map(),
      isLast: false,
      waits: false,
    };
    gpu.runs = [...gpu.runs, run];
    rateAll(gpu, this.parts.truth);
  }

  carryOut(action: Action): Promise<string | undefined> {
    return Promise.resolve(this.begin(action));
  }

  /** As `carryOut`. */
  begin(action: Action): string | undefined {
    switch (action.kind) {
      case 'launch':
        return this.launch(action);
      case 'retire':
        return this.retire(action);
      case 'reshare':
        return this.reshare(action);
      case 'cut':
        return this.cut(action.device, action.profiles);
      case 'acquire':
        return this.acquire(action.market);
      case 'give-back':
        return this.giveBack(action.node);
    }
  }

  /** When something happens next, ms; what happens to machines is no reason to go on. Infinity: never. */
  nextInstant(): number {
    let next = this.timers.next(false);
    for (const { runs } of this.gpus) {
      for (const one of runs) {
        if (!one.waits) next = Math.min(next, this.now + one.startLeftMs + one.leftMs * one.slowdown);
      }
    }
    for (const { runs } of this.gpus) {
      for (const one of runs) if (one.startLeftMs > 0) next = Math.min(next, this.now + one.startLeftMs);
    }
    return next;
  }

  /** Lets time pass until `at`, at most `nextInstant()`. */
  advance(at: number, waiting: readonly Task[], totals: RunTotals): void {
    for (const gpu of this.gpus) advance(gpu, at - this.now, waiting, totals);
    totals.elapsedMs += at - this.now;
    this.now = at;
  }

  /** Does what is due now, and gives the runs that are over, by GPU. */
  settle(): EndedRun[] {
    const isDue = this.timers.settle(this.now);
    const { gpus } = this;
    for (const gpu of gpus) this.finish(gpu);
    if (isDue || this.ended.length > 0) this.clear();
    const { ended } = this;
    this.ended = [];
    return ended;
  }

  private finish(gpu: SimulatedGpu): void {
    const done = gpu.runs.filter((one) => one.startLeftMs <= 0 && one.leftMs <= 1e-6 && !one.waits);
    if (done.length > 0) {
      gpu.runs = gpu.runs.filter((one) => !done.includes(one));
      for (const { instance } of done) if (this.moved.get(instance)?.whileBusy) this.moved.delete(instance);
      const left = processesAmong(done).filter(({ instance }) => !beginBatch(gpu, instance, this.now));
      if (gpu.idle) {
        const idle = left.filter(({ isLast }) => !isLast);
        gpu.idle = [...gpu.idle, ...idle.map((one) => this.idling(one.instance, one.task, one.class, one.request))];
      }
    }
    rateAll(gpu, this.parts.truth);
    this.ended.push(...done.map((run) => ({ run, gpu, isStopped: false })));
  }

  private launch({
    function: action,
    namespace,
    gpus,
    share,
    request,
  }: Action & { kind: 'launch' }): string | undefined {
    const [id] = gpus;
    const gpu = this.open.find((one) => one.id === id);
    if (gpu === undefined || gpus.length > 1) return `there is no GPU '${gpus.join(', ')}' for it`;
    if (gpu.idle === undefined) return 'instances are not kept';
    const job = this.parts.known({ action, namespace });
    if (job === undefined) return `no request of '${action}' has come`;
    const { task } = job;
    const idleMiB = gpu.idle.reduce((sum, { memoryMiB }) => sum + memoryMiB, 0);
    if (heldMiB(gpu) + idleMiB + task.memoryMiB > gpu.memoryMiB) return 'it has not the memory';
    if (gpu.mode === 'exclusive' && gpu.running.length > 0) return 'it is not free';
    const { memoryMiB } = task;
    const one: Loading = {
      id: this.newId(),
      function: action,
      namespace,
      memoryMiB,
      share: classAtOrAbove(share) / 100,
      ...(request !== undefined && { request }),
      task,
      startedAt: this.now,
    };
    gpu.loading = [...gpu.loading, one];
    this.later(this.startMsOf(job, gpu.id), () => {
      if (!gpu.loading.includes(one)) return;
      gpu.loading = gpu.loading.filter((other) => other !== one);
      if (!beginBatch(gpu, one.id, this.now)) {
        gpu.idle = [...(gpu.idle ?? []), this.idling(one.id, task, one.share, one.request)];
      }
    });
    return undefined;
  }

  /** How long a new instance for a job takes to start, ms. */
  private startMsOf({ startMs }: ReplayJob, place: string): number {
    return this.pools === undefined ? startMs : this.pools.take(place, this.now);
  }

  private retire({ instance, graceMs }: Action & { kind: 'retire' }): string | undefined {
    for (const gpu of this.gpus) {
      const runs = gpu.runs.filter((one) => one.instance === instance);
      if (runs.length > 0) {
        for (const run of runs) {
          run.isLast = true;
          if (graceMs !== undefined) this.later(graceMs, () => this.stop(gpu, run));
        }
        return undefined;
      }
      const isOther = (one: { id: string }): boolean => one.id !== instance;
      const [idle, loading] = [gpu.idle?.filter(isOther), gpu.loading.filter(isOther)];
      const isHere = idle?.length !== gpu.idle?.length || loading.length !== gpu.loading.length;
      if (!isHere) continue;
      if (idle) gpu.idle = idle;
      gpu.loading = loading;
      this.later(0, () => undefined);
      return undefined;
    }
    return `there is no instance '${instance}'`;
  }

  private stop(gpu: SimulatedGpu, run: Run): void {
    if (!gpu.runs.includes(run)) return;
    gpu.runs = gpu.runs.filter((one) => one !== run);
    this.ended.push({ run, gpu, isStopped: true });
  }

  private reshare(action: Action & { kind: 'reshare' }): string | undefined {
    const { instance, request, limit, whileBusy = false } = action;
    const there = this.instances.find(({ id }) => id === instance);
    if (there === undefined) return `there is no instance '${instance}'`;
    const within = Math.min(limit, there.share.class);
    this.later(this.parts.times.reshareMs, () => {
      const moved = { request: Math.min(request, within), limit: within, whileBusy };
      const isBusy = this.gpus.some(({ runs }) => runs.some((run) => run.instance === instance));
      if (whileBusy && !isBusy) return;
      this.moved.set(instance, moved);
      for (const gpu of this.gpus) {
        const own = gpu.runs.filter((run) => run.instance === instance);
        for (const run of own) Object.assign(run, { share: moved.limit, request: moved.request });
        if (own.length > 0) gpu.runs = [...gpu.runs];
      }
    });
    return undefined;
  }

  private cut(device: string, profiles: readonly string[]): string | undefined {
    const known = this.devices.get(device);
    if (known === undefined) return `there is no device '${device}'`;
    const { type } = known.place;
    const problem = this.problemOf(device, known.place) ?? geometryFault(type, profiles);
    if (problem !== undefined) return problem;
    if (profilesOf(type).length === 0 && profiles.length > 0) return `a ${type} cannot be cut`;
    known.wanted = [...profiles];
    delete known.refused;
    this.later(0, () => undefined);
    for (const gpu of this.gpus) if (gpu.device === device) gpu.isClosed = true;
    this.reopen();
    return undefined;
  }

  /** Why a device may not be cut. */
  private problemOf(device: string, { mayNotCut }: SimulatedPlace): string | undefined {
    const foreign = this.gpus.filter((gpu) => gpu.device === device).flatMap(({ trainings }) => trainings).length;
    return mayNotCut ?? cutProblem({ isManaged: true, foreign });
  }

  private acquire(market: NodeState['market']): string | undefined {
    const { machines } = this;
    const { more, times } = this.parts;
    if (more === undefined) return 'no node can be taken';
    if (machines === undefined) {
      const node = `taken${(this.made += 1)}`;
      this.later(times.acquireMs, () => this.comes(node, market, more));
      return undefined;
    }
    const machine = machines.ask(market ?? 'on-demand', this.now);
    this.timers.hasMachineNews = true;
    if (machine === undefined) return `market '${market}' has no machine`;
    const { id, upAt, noticedAt } = machine;
    this.timers.add(upAt, () => machine.goneAt > this.now && this.comes(id, market, more), true);
    const notice = (): void => {
      const state = this.nodeStates.get(id);
      if (state !== undefined) this.nodeStates.set(id, { ...state, leavesAt: machine.goneAt });
    };
    // A machine whose end is known before it is up has notice as it comes.
    const [told, closed] = [noticedAt, Math.max(noticedAt, machine.goneAt - machines.provider.closesMs)];
    this.timers.add(Math.max(upAt, told), notice, true);
    this.timers.add(Math.max(upAt, closed), () => this.close(id), true);
    this.timers.add(machine.goneAt, () => this.lose(id), true);
    return undefined;
  }

  /** A node comes. */
  private comes(node: string, market: NodeState['market'], more: NonNullable<SimulatedParts['more']>): void {
    const places = more.flatMap((one, at) => this.placed({ ...one, id: `${node}-gpu${at}`, node }));
    this.gpus = [...this.gpus, ...places];
    this.nodeStates.set(node, { id: node, labels: {}, ...(market && { market }) });
    this.reopen();
  }

  private giveBack(node: string): string | undefined {
    if (!this.nodeStates.has(node)) return `there is no node '${node}'`;
    if (this.gpus.some((gpu) => gpu.node === node && gpu.trainings.length > 0)) return 'a workload runs on it';
    this.givenBack.add(node);
    this.later(0, () => undefined);
    this.close(node);
    return undefined;
  }

  private close(node: string): void {
    if (!this.nodeStates.has(node)) return;
    this.leaving.add(node);
    for (const gpu of this.gpus) if (gpu.node === node) gpu.isClosed = true;
    this.reopen();
  }

  /** A node is taken away: its runs are stopped. */
  private lose(node: string): void {
    for (const gpu of this.gpus) if (gpu.node === node) for (const run of gpu.runs) this.stop(gpu, run);
    this.remove(node);
  }

  private remove(node: string): void {
    this.leaving.delete(node);
    this.givenBack.delete(node);
    this.nodeStates.delete(node);
    this.gpus = this.gpus.filter((gpu) => gpu.node !== node);
    for (const [device, { place }] of this.devices) if (place.node === node) this.devices.delete(device);
    const machine = this.machines?.rented.find(({ id }) => id === node);
    if (machine !== undefined) machine.goneAt = Math.min(machine.goneAt, this.now);
    this.timers.hasMachineNews = true;
    this.reopen();
  }

  /** Cuts the devices and lets the nodes go whose last run is over. */
  private clear(): void {
    const isEmpty = (gpus: readonly SimulatedGpu[]): boolean => gpus.every(({ running }) => running.length === 0);
    for (const [device, known] of this.devices) {
      const { wanted } = known;
      if (wanted === undefined) continue;
      const there = this.gpus.filter((gpu) => gpu.device === device);
      const { remove } = sliceChanges(slicesOf(there), wanted);
      if (!isEmpty(there.filter(({ id, profile }) => profile === undefined || remove.includes(id)))) continue;
      delete known.wanted;
      known.cutting = wanted;
      this.later(this.parts.times.cutMs, () => this.replace(device, wanted));
    }
    for (const node of this.givenBack) if (isEmpty(this.gpus.filter((gpu) => gpu.node === node))) this.remove(node);
  }

  /** Puts the wanted slices in the place of those that go. */
  private replace(device: string, wanted: readonly string[]): void {
    const known = this.devices.get(device);
    if (known === undefined) return;
    const { place } = known;
    const there = this.gpus.filter((gpu) => gpu.device === device);
    delete known.cutting;
    const failure = this.parts.cutFails?.(device, wanted);
    if (failure !== undefined) {
      known.refused = { profiles: wanted, refused: failure };
      for (const gpu of there) gpu.isClosed = known.wanted !== undefined || this.leaving.has(gpu.node);
      this.reopen();
      return;
    }
    const { remove, add } = sliceChanges(slicesOf(there), wanted);
    const stay = there.filter(({ id, profile }) => profile !== undefined && !remove.includes(id));
    const come = add.map((profile) => this.slice(place, profile));
    const whole = wanted.length === 0 ? [this.opened(place)] : [];
    this.gpus = [...this.gpus.filter((gpu) => gpu.device !== device), ...stay, ...come, ...whole];
    const isOther = known.wanted !== undefined;
    for (const gpu of [...stay, ...come, ...whole]) gpu.isClosed = isOther || this.leaving.has(gpu.node);
    this.reopen();
  }

  /** A device at the beginning: itself, or its slices. */
  private placed(place: SimulatedPlace): SimulatedGpu[] {
    const { profiles = [], ...whole } = place;
    const opened = this.opened(whole);
    return profiles.length === 0 ? [opened] : profiles.map((profile) => this.slice(whole, profile));
  }

  private slice(device: SimulatedPlace, profile: string): SimulatedGpu {
    return this.opened(slicePlace(device, profile, (this.made += 1)));
  }

  private opened(place: SimulatedPlace): SimulatedGpu {
    const { idle = [], device = place.id, node } = place;
    if (!this.devices.has(device) && place.device === undefined)
      this.devices.set(device, { place: { ...place, idle: [] } });
    if (!this.nodeStates.has(node)) this.nodeStates.set(node, { id: node, labels: {} });
    const kept = idle.map((one) => ({ ...one, id: this.newId(), idleSince: this.now }));
    const workloads = (this.parts.workloads ?? []).filter(({ gpu }) => gpu === place.id);
    return simulatedGpu(place, this.parts.keepsInstances ? kept : undefined, workloads);
  }

  private reopen(): void {
    this.open = this.gpus.filter(({ isClosed }) => !isClosed);
  }

  private idling(id: string, task: Task, share: number, request = share): SimulatedInstance {
    return { ...instanceOf(task, share), ...(request < share && { request }), id, idleSince: this.now };
  }

  private later(ms: number, act: () => void): void {
    this.timers.add(this.now + ms, act);
  }

  private newId(): string {
    return `i${(this.made += 1)}`;
  }
}

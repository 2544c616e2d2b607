import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { randomFraction } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { ProvisioningError, matchSpecs } from './container-factory.js';
import type {
  Container,
  ContainerFactory,
  ContainerSpec,
  Call,
  CallLimits,
  InitRequest,
  CallOutcome,
  RunRequest,
} from './container-factory.js';

/** Dependencies and settings of a simulated factory. */
export interface SimulatedFactoryOptions extends SimulatedContainerOptions {
  random: Random;
  kinds: readonly string[];
  /** Which containers can unload; default: all. */
  unloading?: 'all' | 'prewarmed' | 'none';
  /** Whether containers with learned imports can have another memory limit; default: no. */
  resizes?: boolean;
  /** Shortest and longest time that a container takes to start, ms. */
  startMs?: readonly [number, number];
  /** Share of the starts that fail, 0 to 1. */
  failing?: number;
}

/** A factory whose containers are objects. Deterministic: it uses only Clock and Random. */
export interface SimulatedFactory extends ContainerFactory {
  /** Containers that have not ended, oldest first. */
  readonly live: readonly Container[];
  /** Ends a container as if its processes had died. */
  crash(id: string): void;
  /** Ends and forgets all containers at once, like a crash of the machine; the factory can be started again. */
  crashAll(): void;
}

/** Makes a factory of simulated containers. */
export function createSimulatedFactory(options: SimulatedFactoryOptions): SimulatedFactory {
  const containers = new Map<string, SimulatedContainer>();
  const [shortestMs, longestMs] = options.startMs ?? [0, 0];
  let made = 0;
  let open = false;
  let generation = 0;

  async function make(spec: ContainerSpec, canUnload: boolean): Promise<Container> {
    if (!open) throw new ProvisioningError('The container factory is not open.');
    if (!options.kinds.includes(spec.kind)) throw new ProvisioningError(`There is no runtime for '${spec.kind}'.`);
    const born = generation;
    await sleep(options.clock, shortestMs + (longestMs - shortestMs) * randomFraction(options.random));
    if (!open || born !== generation) throw new ProvisioningError('The container factory was closed.');
    if (randomFraction(options.random) < (options.failing ?? 0))
      throw new ProvisioningError('The container did not start.');
    const id = `simulated-${++made}`;
    const container = new SimulatedContainer(id, spec, canUnload, options, () => containers.delete(id));
    containers.set(id, container);
    return container;
  }

  function endAll(): void {
    for (const container of [...containers.values()]) container.die(false);
  }

  return {
    get live() {
      return [...containers.values()];
    },
    start() {
      endAll();
      open = true;
      return Promise.resolve({ weaknesses: [], notes: [] });
    },
    supports: (kind) => options.kinds.includes(kind),
    create: (spec) => make(spec, (options.unloading ?? 'all') === 'all'),
    prewarm: (spec) => make(spec, options.unloading !== 'none'),
    match: (prewarmed, wanted) => matchSpecs(prewarmed, wanted, options.resizes === true),
    close() {
      open = false;
      generation++;
      endAll();
      return Promise.resolve();
    },
    crash: (id) => containers.get(id)?.die(false),
    crashAll() {
      open = false;
      generation++;
      endAll();
    },
  };
}

/** Answer of a simulated function to one init or run. */
export interface GuestAnswer {
  /** Duration, ms. Default 0. */
  afterMs?: number;
  /** Lines on stdout and stderr. */
  stdout?: readonly string[];
  stderr?: readonly string[];
  /** Delay of the log lines after the end of the call, ms. Absent: no delay. */
  logsAfterMs?: number;
  /**
   * `result` answers with a value, `error` with a message; `exit` ends the container, `exhaust` ends it for memory;
   * `hang` never answers; `bye` says that the runtime takes no more runs.
   */
  then:
    | { do: 'result'; value: JsonValue }
    | { do: 'error'; error: string }
    | { do: 'exit' }
    | { do: 'exhaust' }
    | { do: 'hang' }
    | { do: 'bye'; value: JsonValue };
}

/** The behaviour of all functions; `memory` keeps state between calls of one container. */
export interface SimulatedGuest {
  init(request: InitRequest, memory: Map<string, JsonValue>, container: string): GuestAnswer;
  run(request: RunRequest, memory: Map<string, JsonValue>): GuestAnswer;
  /** Answer to an unload in the container of that id; absent: it succeeds at once. */
  unload?(container: string): GuestAnswer;
  /** Answer to a check of the container of that id; absent: the container is healthy. */
  check?(container: string): GuestAnswer;
}

/** Settings of simulated containers. */
interface SimulatedContainerOptions {
  clock: Clock;
  guest: SimulatedGuest;
  /** Real memory of a container, MiB; absent: it is not known. */
  realMiB?: number;
  /** Whether containers end late runs by themselves. Default: no. */
  endsLate?: boolean;
  /** Processor time of the container of that id so far, ms; absent: the time is not known. */
  processorMs?(container: string): number;
}

/** Prefixes a line as the process factory does. */
function prefixed(clock: Clock, name: 'stdout' | 'stderr', text: string): string {
  return `${new Date(clock.now()).toISOString().replace('Z', '000000Z')} ${name}: ${text}`;
}

const done: GuestAnswer = { then: { do: 'result', value: {} } };

interface Pending {
  isCheck: boolean;
  timers: Timer[];
  settle(outcome: CallOutcome): void;
}

/** A container that is an object: its guest decides the answers, and the clock their times. */
class SimulatedContainer implements Container {
  readonly exited: Promise<void>;
  readonly pid = undefined;
  readonly hostPid = undefined;
  readonly canBatch = true;
  readonly msContainer = undefined;
  readonly sinceMs: number;
  busyMs = 0;
  private readonly memory = new Map<string, JsonValue>();
  private readonly pending = new Set<Pending>();
  private state: 'live' | 'paused' | 'ended' = 'live';
  private initialized = false;
  private leaving = false;
  private exhausted = false;
  private lines: string[] = [];
  private end!: () => void;

  constructor(
    readonly id: string,
    public spec: ContainerSpec,
    readonly canUnload: boolean,
    private readonly options: SimulatedContainerOptions,
    private readonly onEnd: () => void,
  ) {
    this.sinceMs = options.clock.now();
    this.exited = new Promise((resolve) => {
      this.end = resolve;
    });
  }

  memoryMiB(): Promise<number | undefined> {
    return Promise.resolve(this.options.realMiB);
  }

  fits(): boolean {
    return true;
  }

  resize(memoryMiB: number): boolean {
    this.spec = { ...this.spec, memoryMiB };
    return true;
  }

  init(request: InitRequest, limits: CallLimits): Call {
    if (this.initialized) return refused(`Container ${this.id} cannot be initialized more than once.`);
    this.initialized = true;
    return this.begin(limits, true, () => this.options.guest.init(request, this.memory, this.id));
  }

  run(request: RunRequest, limits: CallLimits): Call {
    return this.begin(limits, false, () => this.options.guest.run(request, this.memory));
  }

  unload(_: boolean, limits: CallLimits): Call {
    if (!this.canUnload) return refused(`Container ${this.id} cannot unload.`);
    if (this.busy > 0) return refused(`Container ${this.id} cannot unload while it runs.`);
    const call = this.begin(limits, true, () => this.options.guest.unload?.(this.id) ?? done);
    // A rejection is the caller's to handle.
    void call.outcome.then(
      (outcome) => {
        if (outcome.type !== 'ok') return;
        this.initialized = false;
        this.memory.clear();
      },
      () => undefined,
    );
    return call;
  }

  check(limits: CallLimits): Call {
    if (!this.canUnload) return refused(`Container ${this.id} cannot be checked.`);
    if (this.busy > 0) return refused(`Container ${this.id} cannot be checked while it runs.`);
    return this.begin(limits, true, () => this.options.guest.check?.(this.id) ?? done, true);
  }

  pause(): Promise<void> {
    if (this.state === 'live' && this.busy > 0) {
      return Promise.reject(new Error(`Container ${this.id} cannot be paused while it runs.`));
    }
    if (this.state === 'live') this.state = 'paused';
    return Promise.resolve();
  }

  resume(): Promise<void> {
    if (this.state === 'paused') this.state = 'live';
    return Promise.resolve();
  }

  giveWay(): Promise<void> {
    return Promise.resolve();
  }

  processorMs(): Promise<number | undefined> {
    return Promise.resolve(this.options.processorMs?.(this.id));
  }

  printedSince(from: number): string[] {
    return this.lines.slice(from);
  }

  get endsLate(): boolean {
    return this.options.endsLate ?? false;
  }

  destroy(): Promise<void> {
    this.die(false);
    return Promise.resolve();
  }

  die(exhausted: boolean): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.exhausted = exhausted;
    for (const call of this.pending) call.settle({ type: 'lost', oomKilled: exhausted });
    this.onEnd();
    this.end();
  }

  /** Number of calls under way, without checks. */
  private get busy(): number {
    return [...this.pending].filter(({ isCheck }) => !isCheck).length;
  }

  private begin(limits: CallLimits, init: boolean, behave: () => GuestAnswer, isCheck = false): Call {
    if (this.state === 'paused') return refused(`Container ${this.id} is paused.`);
    if (this.busy >= this.spec.concurrency) return refused(`Container ${this.id} runs all it may run at once.`);
    if (this.leaving) return { outcome: Promise.resolve({ type: 'unavailable' }), logs: Promise.resolve([]) };
    if (this.state === 'ended') {
      return {
        outcome: Promise.resolve({ type: 'lost', oomKilled: this.exhausted }),
        logs: Promise.resolve([]),
      };
    }
    let settle!: (outcome: CallOutcome) => void;
    const outcome = new Promise<CallOutcome>((resolve) => {
      settle = resolve;
    });
    const { clock } = this.options;
    const call: Pending = {
      isCheck,
      timers: [],
      settle: (reached) => {
        for (const timer of call.timers) timer.cancel();
        this.pending.delete(call);
        if (!init) this.busyMs += clock.monotonicMs() - startedMs;
        settle(reached);
      },
    };
    this.pending.add(call);
    const answer = behave();
    const startedMs = clock.monotonicMs();
    call.timers.push(
      clock.setTimer(limits.timeoutMs, () => call.settle({ type: 'timeout' })),
      clock.setTimer(answer.afterMs ?? 0, () => this.act(answer, init, limits, call)),
    );
    const logs = async (): Promise<string[]> => {
      const reached = await outcome;
      const lines = reached.type === 'ok' ? [] : this.cut(limits.logLimitBytes);
      if (answer.logsAfterMs !== undefined) await sleep(clock, answer.logsAfterMs);
      return lines;
    };
    return { outcome, logs: logs() };
  }

  private act(answer: GuestAnswer, init: boolean, limits: CallLimits, call: Pending): void {
    const { clock } = this.options;
    this.lines.push(...(answer.stdout ?? []).map((text) => prefixed(clock, 'stdout', text)));
    this.lines.push(...(answer.stderr ?? []).map((text) => prefixed(clock, 'stderr', text)));
    const { then } = answer;
    switch (then.do) {
      case 'hang':
        return;
      case 'exit':
      case 'exhaust':
        this.die(then.do === 'exhaust');
        return;
      case 'error':
        call.settle({ type: 'error', error: then.error, body: JSON.stringify({ error: then.error }) });
        return;
      case 'bye':
        this.leaving = true;
        call.settle(resultOf(then.value, limits));
        return;
      case 'result':
        call.settle(init ? { type: 'ok' } : resultOf(then.value, limits));
        return;
      default:
        throw new Error(`A guest cannot do ${JSON.stringify(then satisfies never)}.`);
    }
  }

  private cut(limitBytes: number): string[] {
    const lines = this.lines;
    this.lines = [];
    if (limitBytes === 0) return [];
    let bytes = 0;
    const kept = lines.filter((line) => (bytes += Buffer.byteLength(line) + 1) <= limitBytes);
    if (kept.length === lines.length) return lines;
    const notice = `Logs were truncated because the total bytes size exceeds the limit of ${limitBytes} bytes.`;
    return [...kept, prefixed(this.options.clock, 'stderr', notice)];
  }
}

function refused(reason: string): Call {
  return { outcome: Promise.reject(new Error(reason)), logs: Promise.resolve([]) };
}

function resultOf(value: JsonValue, limits: CallLimits): CallOutcome {
  const text = JSON.stringify(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.maxResultBytes) {
    return { type: 'oversize', head: Buffer.from(text).subarray(0, limits.truncationBytes).toString(), bytes };
  }
  if (!isJsonObject(value) && !Array.isArray(value)) return { type: 'error', body: text };
  return { type: 'result', result: value satisfies JsonObject | JsonValue[], bytes };
}

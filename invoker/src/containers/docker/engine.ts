import type { Duplex } from 'node:stream';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { EngineClient, EngineError } from './engine-client.js';
import type { EngineCall } from './engine-client.js';

/** Time limits of calls, ms; defaults for pulls, pauses and others are OpenWhisk's. */
export interface EngineTimeouts {
  /** All calls that have no limit of their own. */
  callMs: number;
  pauseMs: number;
  pullMs: number;
}

export const defaultTimeouts: EngineTimeouts = { callMs: 60_000, pauseMs: 10_000, pullMs: 600_000 };

/** Interval of probes of an engine that did not answer, ms. */
const probeEveryMs = 2000;
const probeTimeoutMs = 2000;

/**
 * Docker notes that a container is paused or resumed once more when containerd reports it, which may be after the next call: until the
 * later report has come it takes the container for what it was. The call is made again after these pauses, ms.
 */
const reportedWithinMs = [20, 100, 400];
const isOutOfDate = /is (already|not) paused/;

/** The engine's report of a container. */
export interface ContainerState {
  running: boolean;
  oomKilled: boolean;
  exitCode: number;
  /** The host's id of the container's first process. */
  pid: number;
  /** Address in the container's network; empty without one. */
  address: string;
}

/** The engine's report of an image. */
export interface ImageFacts {
  id: string;
  labels: Readonly<Record<string, string>>;
}

/** The engine's report of a network. */
export interface NetworkFacts {
  /** `bridge`; `null` for the network `none`. */
  driver: string;
  /** The host's address in the network; undefined if there is none. */
  gateway: string | undefined;
  /** The network's range of addresses, such as `172.18.0.0/16`; undefined if there is none. */
  subnet: string | undefined;
}

interface InspectAnswer {
  State: { Running: boolean; OOMKilled: boolean; ExitCode: number; Pid: number };
  NetworkSettings: { Networks?: Record<string, { IPAddress?: string }> };
}

/** Whether the engine answers. */
type EngineHealth = 'healthy' | 'unhealthy';

/**
 * The engine as the factory uses it. A call that cannot connect or gets no answer in time makes the engine unhealthy. All
 * calls but removals are refused at once then, until a probe is answered.
 */
export class Engine {
  health: EngineHealth = 'healthy';
  private readonly client: EngineClient;
  private closed = false;
  private recoveries = 0;

  constructor(
    socketPath: string,
    private readonly clock: Clock,
    private readonly timeouts: EngineTimeouts,
    /** Called at each change of health, with the reason. */
    private readonly onHealth: (health: EngineHealth, reason: string) => void,
  ) {
    this.client = new EngineClient(socketPath, clock);
  }

  /** Resolves if the engine answers. */
  async ping(): Promise<void> {
    await this.guarded(() => this.client.callForBytes({ method: 'GET', path: '/_ping', timeoutMs: probeTimeoutMs }));
  }

  /** Makes a container; resolves with its id. */
  async create(name: string, body: object): Promise<string> {
    const made = await this.call<{ Id: string }>({ method: 'POST', path: '/containers/create', query: { name }, body });
    if (made === undefined) throw new EngineError('The engine made a container without naming it.', 500);
    return made.Id;
  }

  async start(id: string): Promise<void> {
    await this.call({ method: 'POST', path: `/containers/${id}/start` });
  }

  /** Pauses a container that runs. Rejects with EngineError. */
  pause(id: string): Promise<void> {
    return this.switch(`/containers/${id}/pause`);
  }

  /** Has a paused container run. Rejects with EngineError. */
  unpause(id: string): Promise<void> {
    return this.switch(`/containers/${id}/unpause`);
  }

  /**
   * Kills and removes a container; a missing one counts as removed. Also tried, with a shorter time limit, while the engine
   * is unhealthy.
   */
  async remove(id: string): Promise<void> {
    try {
      await this.guarded(() =>
        this.client.call({
          method: 'DELETE',
          path: `/containers/${id}`,
          query: { force: true, v: true },
          timeoutMs: this.health === 'healthy' ? this.timeouts.callMs : probeTimeoutMs,
        }),
      );
    } catch (error) {
      // 409: another caller is removing it.
      if (!(error instanceof EngineError) || (error.status !== 404 && error.status !== 409)) throw error;
    }
  }

  /** The state of a container; undefined if there is no such container. */
  async inspect(id: string): Promise<ContainerState | undefined> {
    const answer = await this.unlessMissing(
      this.call<InspectAnswer>({ method: 'GET', path: `/containers/${id}/json` }),
    );
    if (answer === undefined) return undefined;
    const { State, NetworkSettings } = answer;
    const [network] = Object.values(NetworkSettings.Networks ?? {});
    return {
      running: State.Running,
      oomKilled: State.OOMKilled,
      exitCode: State.ExitCode,
      pid: State.Pid,
      address: network?.IPAddress ?? '',
    };
  }

  /** Ids of all containers with the label, running or not. */
  async list(label: string): Promise<string[]> {
    const query = { all: true, filters: JSON.stringify({ label: [label] }) };
    const rows = await this.call<{ Id: string }[]>({ method: 'GET', path: '/containers/json', query });
    return (rows ?? []).map(({ Id }) => Id);
  }

  /** Processor time of all processes of a container so far, ms. */
  async processorMs(id: string): Promise<number | undefined> {
    type Stats = { cpu_stats?: { cpu_usage?: { total_usage?: number } } };
    const query = { stream: false, 'one-shot': true };
    const stats = await this.call<Stats>({ method: 'GET', path: `/containers/${id}/stats`, query });
    const usedNs = stats?.cpu_stats?.cpu_usage?.total_usage;
    return usedNs === undefined ? undefined : usedNs / 1e6;
  }

  /** The container's output from now on, multiplexed as the Engine API specifies. */
  attach(id: string): Promise<{ stream: Duplex; head: Buffer }> {
    const query = { stream: true, stdout: true, stderr: true };
    const call = { method: 'POST', path: `/containers/${id}/attach`, query } as const;
    return this.unlessUnhealthy(() => this.client.hijack({ ...call, timeoutMs: this.timeouts.callMs }));
  }

  /** The last lines that the container printed, multiplexed. */
  tail(id: string, lines: number): Promise<Buffer> {
    const query = { stdout: true, stderr: true, tail: lines };
    const call = { method: 'GET', path: `/containers/${id}/logs`, query } as const;
    return this.unlessUnhealthy(() => this.client.callForBytes({ ...call, timeoutMs: this.timeouts.callMs }));
  }

  /** The facts of an image; undefined if the engine lacks the image. */
  async image(name: string): Promise<ImageFacts | undefined> {
    type Answer = { Id: string; Config?: { Labels?: Record<string, string> | null } | null };
    const answer = await this.unlessMissing(this.call<Answer>({ method: 'GET', path: `/images/${name}/json` }));
    return answer && { id: answer.Id, labels: answer.Config?.Labels ?? {} };
  }

  /**
   * Fetches an image from its registry. Rejects with EngineError, with the registry's message if the registry refused. A
   * slow registry does not make the engine unhealthy.
   */
  async pull(image: string): Promise<void> {
    const query = { fromImage: image };
    const call = { method: 'POST', path: '/images/create', query, timeoutMs: this.timeouts.pullMs } as const;
    let refusal: string | undefined;
    await this.unlessUnhealthy(async () => {
      try {
        await this.client.callForLines(call, (line) => {
          const { error } = line as { error?: unknown };
          if (typeof error === 'string') refusal = error;
        });
      } catch (error) {
        if (!(error instanceof EngineError) || !error.isLate) throw error;
        refusal = `its registry did not send it within ${call.timeoutMs} ms`;
      }
    });
    if (refusal !== undefined) throw new EngineError(refusal, 500);
  }

  /** The facts of a network; undefined if there is no such network. */
  async network(name: string): Promise<NetworkFacts | undefined> {
    type Answer = { Driver: string; IPAM?: { Config?: { Gateway?: string; Subnet?: string }[] | null } };
    const answer = await this.unlessMissing(this.call<Answer>({ method: 'GET', path: `/networks/${name}` }));
    if (answer === undefined) return undefined;
    const config = answer.IPAM?.Config?.find(({ Gateway }) => Gateway !== undefined && Gateway !== '');
    // The engine's default networks may give the gateway with a prefix length.
    return { driver: answer.Driver, gateway: config?.Gateway?.replace(/\/.*$/, ''), subnet: config?.Subnet };
  }

  /** Makes a network. `body` is the Engine API's. */
  async createNetwork(body: object): Promise<void> {
    await this.call({ method: 'POST', path: '/networks/create', body });
  }

  /** Removes a network; a missing one counts as removed. */
  async removeNetwork(name: string): Promise<void> {
    await this.unlessMissing(this.call({ method: 'DELETE', path: `/networks/${name}` }));
  }

  close(): void {
    this.closed = true;
    this.client.close();
  }

  private call<Answer>(call: Omit<EngineCall, 'timeoutMs'> & { timeoutMs?: number }): Promise<Answer | undefined> {
    return this.unlessUnhealthy(() => this.client.call<Answer>({ timeoutMs: this.timeouts.callMs, ...call }));
  }

  private async switch(path: string): Promise<void> {
    const call = { method: 'POST', path, timeoutMs: this.timeouts.pauseMs } as const;
    for (const againMs of reportedWithinMs) {
      try {
        await this.call(call);
        return;
      } catch (error) {
        if (!(error instanceof EngineError) || !isOutOfDate.test(error.message)) throw error;
        await sleep(this.clock, againMs);
      }
    }
    await this.call(call);
  }

  private async unlessMissing<Answer>(answer: Promise<Answer | undefined>): Promise<Answer | undefined> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return undefined;
      throw error;
    }
  }

  private unlessUnhealthy<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    if (this.health === 'unhealthy') {
      return Promise.reject(new EngineError('The Docker engine does not answer; it is asked again every 2 s.', 0));
    }
    return this.guarded(work);
  }

  private async guarded<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const { recoveries } = this;
    try {
      return await work();
    } catch (error) {
      // A call from before the engine's recovery says nothing about its present health.
      if (error instanceof EngineError && error.isUnreachable && recoveries === this.recoveries) {
        this.failed(error.message);
      }
      throw error;
    }
  }

  private failed(reason: string): void {
    if (this.health === 'unhealthy' || this.closed) return;
    this.health = 'unhealthy';
    this.onHealth('unhealthy', reason);
    this.probeLater();
  }

  private probeLater(): void {
    this.clock.setBackgroundTimer(probeEveryMs, () => {
      if (this.closed) return;
      this.client.callForBytes({ method: 'GET', path: '/_ping', timeoutMs: probeTimeoutMs }).then(
        () => {
          this.recoveries += 1;
          this.health = 'healthy';
          this.onHealth('healthy', 'It answers again.');
        },
        () => this.probeLater(),
      );
    });
  }
}

/** Containers that are removed in parallel at the start. */
const maxAtOnce = 10;
/** Interval of retries of failed removals, ms. */
const againMs = 5000;

/** Removes containers from the engine and retries failed removals until it is closed. */
export class Removals {
  private readonly waiting = new Set<string>();
  private closed = false;

  constructor(
    private readonly engine: Pick<Engine, 'remove'>,
    private readonly clock: Clock,
    private readonly warn: (message: string) => void,
  ) {}

  /** Kills and removes a container, by its id or name, and retries later on failure. Never rejects. */
  async remove(engineId: string): Promise<void> {
    this.waiting.add(engineId);
    try {
      await this.engine.remove(engineId);
      this.waiting.delete(engineId);
    } catch (error) {
      this.warn(`Container ${engineId} could not be removed: ${(error as Error).message}`);
      this.removeLater(engineId);
    }
  }

  /** Removes later a container that the engine may still make. */
  removeLater(engineId: string): void {
    if (this.closed) return;
    this.waiting.add(engineId);
    this.clock.setBackgroundTimer(againMs, () => {
      if (!this.closed) void this.remove(engineId);
    });
  }

  /** Removes all containers given; rejects as the engine does. */
  async removeAll(engineIds: readonly string[]): Promise<void> {
    const left = [...engineIds];
    const worker = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await this.engine.remove(id);
    };
    await Promise.all(Array.from({ length: maxAtOnce }, worker));
  }

  /** Tries once more to remove the containers that wait; the next process removes the rest. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.waiting].map((engineId) => this.remove(engineId)));
  }
}

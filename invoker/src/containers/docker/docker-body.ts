import type { Clock } from '@gpuwhisk/common/system/clock';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { ConnectedContainer, ContainerBody } from '../connected-container.js';
import type { ContainerState, Engine } from './engine.js';
import { EngineError } from './engine-client.js';

/** How long a container whose runtime is gone is asked whether it has ended, before it is killed; ms. */
const endWaitMs = 1000;
const endPollMs = 20;

/** What a container of the engine's is made of. */
export interface DockerParts {
  /** The engine's id of it. */
  engineId: string;
  engine: Engine;
  clock: Clock;
  hostPid: number | undefined;
  load: ContainerBody['load'];
  /** Removes it from the engine, and what else it held on the host; tried again later if that fails. Never rejects. */
  remove(): Promise<void>;
}

/** The processes of a container that the engine runs. */
export class DockerBody implements ContainerBody {
  private container: ConnectedContainer | undefined;
  private removal: Promise<void> | undefined;
  private leaving = false;

  readonly load: ContainerBody['load'];

  constructor(private readonly parts: DockerParts) {
    this.load = (request, limits, init) => parts.load(request, limits, init);
  }

  get hostPid(): number | undefined {
    return this.parts.hostPid;
  }

  /** Sets whose processes they are; once, before anything else. */
  belongTo(container: ConnectedContainer): void {
    this.container = container;
  }

  async pause(): Promise<void> {
    try {
      await this.parts.engine.pause(this.parts.engineId);
    } catch (error) {
      // It may be frozen yet, once the engine gets to it: the next run would hang.
      if (error instanceof EngineError && error.isUnreachable) void this.container?.destroy();
      throw error;
    }
  }

  resume(): Promise<void> {
    return this.parts.engine.unpause(this.parts.engineId);
  }

  /** An engine takes longer to change a share than it would help. */
  giveWay(): Promise<void> {
    return Promise.resolve();
  }

  async processorMs(): Promise<number | undefined> {
    try {
      return await this.parts.engine.processorMs(this.parts.engineId);
    } catch {
      // It cannot be told of one that is gone, nor by an engine that does not answer, which is found out elsewhere.
      return undefined;
    }
  }

  kill(): void {
    void this.removed().then(() => this.container?.ended(false));
  }

  release(): Promise<void> {
    return this.removed();
  }

  /**
   * Its runtime went away or broke the protocol: finds out how it ended, waiting a little for a container that is about to,
   * and kills it if it goes on.
   */
  async lost(): Promise<void> {
    if (this.leaving) return;
    this.leaving = true;
    const deadlineMs = this.parts.clock.monotonicMs() + endWaitMs;
    let state = await this.state();
    while (state?.running && this.removal === undefined && this.parts.clock.monotonicMs() < deadlineMs) {
      await sleep(this.parts.clock, endPollMs);
      state = await this.state();
    }
    if (this.removal === undefined && state?.running === false) this.container?.ended(state.oomKilled);
    else await this.container?.destroy();
  }

  private async state(): Promise<ContainerState | undefined> {
    try {
      return await this.parts.engine.inspect(this.parts.engineId);
    } catch {
      // An engine that does not answer cannot say how it ended: it is killed.
      return undefined;
    }
  }

  private removed(): Promise<void> {
    this.removal ??= this.parts.remove();
    return this.removal;
  }
}

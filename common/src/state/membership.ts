import type { JsonValue } from '../json.js';
import type { Logger } from '../logging.js';
import type { Clock, Timer } from '../system/clock.js';
import { StateUnavailableError } from './cluster-state.js';
import type { ClusterState } from './cluster-state.js';

/** How often a member says that it is there, and after what silence it is not, ms. */
const beatMs = 2000;
const silentMs = 10_000;

/** Dependencies of membership. */
export interface MembershipDependencies {
  state: ClusterState;
  clock: Clock;
  logger: Logger;
  /** Kind of members: those of one kind know each other. */
  table: string;
  name: string;
  /** What the others are told. */
  value: JsonValue;
}

/** Says that a process is there, and knows who else is; while the state cannot be reached, who was. */
export class Membership {
  private known: ReadonlyMap<string, JsonValue>;
  private timer: Timer | undefined;
  private closed = false;

  constructor(private readonly dependencies: MembershipDependencies) {
    this.known = new Map([[dependencies.name, dependencies.value]]);
  }

  /** Says it once, and goes on to. */
  async open(): Promise<void> {
    await this.beat();
    if (this.closed) return;
    this.timer = this.dependencies.clock.setBackgroundTimer(beatMs, () => void this.open());
  }

  /** Those who are there, this one included. */
  members(): ReadonlyMap<string, JsonValue> {
    return this.known;
  }

  /** Says that it goes. */
  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    const { state, table, name } = this.dependencies;
    await this.tell(() => state.deleteRow(table, name));
  }

  private async beat(): Promise<void> {
    const { state, table, name, value } = this.dependencies;
    await this.tell(async () => {
      await state.setRow(table, name, value, silentMs);
      const rows = await state.rows(table);
      if (!this.closed) this.known = rows.set(name, value);
    });
  }

  private async tell(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      this.dependencies.logger.error({ error: error.message }, 'others of the cluster were not reached');
    }
  }
}

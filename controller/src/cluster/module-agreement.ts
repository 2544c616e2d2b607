// Which controllers may decide about GPUs by their policy modules.
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { Membership } from '@gpuwhisk/common/state/membership';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { LeaseGate } from './lease.js';

/** Table with the modules of each controller, and under `leader` those of the last leader. */
const table = 'gpu-policy-modules';
const leader = 'leader';

/** Dependencies of the agreement. */
interface AgreementDependencies {
  state: ClusterState;
  clock: Clock;
  logger: Logger;
  /** Name of this controller. */
  name: string;
  /** One text for the contents of all its policy modules; empty: it has none. */
  modules: string;
}

/**
 * Keeps a controller from the lease while its policy modules differ from those of the last leader, and another controller has
 * these. Modules are changed by restarting controllers one after the other: once none has the old ones, the new ones lead.
 */
export class ModuleAgreement implements LeaseGate {
  private readonly member: Membership;
  private isRecorded = false;
  /** Whether this controller was last kept from the lease. */
  differs = false;

  constructor(private readonly dependencies: AgreementDependencies) {
    const { modules: value, ...others } = dependencies;
    this.member = new Membership({ ...others, table, value });
  }

  /** Tells the other controllers which modules this one has. */
  open(): Promise<void> {
    return this.member.open();
  }

  close(): Promise<void> {
    return this.member.close();
  }

  async mayTake(): Promise<boolean> {
    const { state, name, modules, logger } = this.dependencies;
    this.isRecorded = false;
    const rows = await state.rows(table);
    const recorded = rows.get(leader);
    const others = [...rows].filter(([one]) => one !== leader && one !== name);
    const keeper = others.find(([, theirs]) => theirs === recorded);
    const differs = recorded !== undefined && recorded !== modules && keeper !== undefined;
    if (differs && !this.differs) {
      logger.error(
        { own: modules, leader: recorded, controller: keeper[0] },
        'the policy modules differ from those of the leader: this controller does not decide about GPUs',
      );
    }
    this.differs = differs;
    return !differs;
  }

  async taken(): Promise<void> {
    if (this.isRecorded) return;
    await this.dependencies.state.setRow(table, leader, this.dependencies.modules);
    this.isRecorded = true;
  }
}

import type { GpuMetrics } from '@gpuwhisk/common/gpu-metrics';
import type { Logger } from '@gpuwhisk/common/logging';
import { geometryFault } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import type { Action, Actuator, Market } from '@gpuwhisk/gpu/view/decision';
import type { ProcurementState } from '@gpuwhisk/gpu/view/view';
import type { DesiredState } from '../state/desired-state.js';
import type { GpuTable } from '../state/gpu-table.js';
import { whyNotCut } from './cluster-view.js';

/**
 * Acquires machines from a cloud and gives them back. Both actions return the reason if that is refused, else undefined. A
 * new node is known by its row.
 */
export interface Procurer {
  acquire(market: Market): Promise<string | undefined>;
  /** Drains a node, and gives it back once nothing runs there. */
  giveBack(node: string): Promise<string | undefined>;
  /** What policies see of it. */
  state(): ProcurementState;
}

/** Dependencies of LiveActuator. */
export interface LiveActuatorParts {
  table: Pick<GpuTable, 'nodes'>;
  desired: Pick<DesiredState, 'retire' | 'reshare' | 'cut'>;
  /** Absent: machines are added and removed by hand. */
  procurer?: Procurer;
  /** Sends a launch. Returns the reason if it is refused, else undefined. */
  launch(action: Action & { kind: 'launch' }): string | undefined;
  logger: Logger;
  metrics: Pick<GpuMetrics, 'acted'>;
}

const noProcurer = 'no procurement is configured: nodes are added and removed by hand';

/** Carries out actions: launches as messages, the others through the desired state of nodes. */
export class LiveActuator implements Actuator {
  constructor(private readonly parts: LiveActuatorParts) {}

  async carryOut(action: Action): Promise<string | undefined> {
    const { logger, metrics } = this.parts;
    try {
      const refused = await this.begin(action);
      metrics.acted(action.kind, refused === undefined ? 'begun' : 'refused');
      logger.info(
        { ...action, ...(refused !== undefined && { refused }) },
        'an action on GPUs was carried out or refused',
      );
      return refused;
    } catch (error) {
      metrics.acted(action.kind, 'failed');
      throw error;
    }
  }

  private async begin(action: Action): Promise<string | undefined> {
    const { desired, procurer, launch } = this.parts;
    switch (action.kind) {
      case 'launch':
        return launch(action);
      case 'retire':
      case 'reshare': {
        const { instance } = action;
        const node = this.parts.table
          .nodes()
          .find(({ residents }) => residents.some(({ container }) => container === instance))?.invoker;
        if (node === undefined) return `there is no instance '${instance}'`;
        if (action.kind === 'retire') await desired.retire(node, instance, action.graceMs);
        else {
          const { request: smRequest, limit: smLimit, whileBusy } = action;
          await desired.reshare(node, instance, { smRequest, smLimit, ...(whileBusy && { whileBusy }) });
        }
        return undefined;
      }
      case 'cut': {
        const { device: uuid, profiles } = action;
        const node = this.parts.table.nodes().find(({ devices }) => devices.some((one) => one.uuid === uuid));
        const device = node?.devices.find((one) => one.uuid === uuid);
        if (node === undefined || device === undefined) return `there is no device '${uuid}'`;
        const problem = whyNotCut(node, device) ?? geometryFault(device.type, profiles);
        if (problem === undefined) await desired.cut(node.invoker, uuid, profiles);
        return problem;
      }
      case 'acquire':
        return procurer === undefined ? noProcurer : procurer.acquire(action.market);
      case 'give-back':
        return procurer === undefined ? noProcurer : procurer.giveBack(action.node);
    }
  }
}

import type { Logger } from '@gpuwhisk/common/logging';
import type { SharedFault } from '@gpuwhisk/common/gpu-observations';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Container } from '../containers/container-factory.js';
import { withFault, classifyXid, sharingFails } from './device-faults.js';
import type { FaultHistory } from './device-faults.js';
import type { DeviceEvent } from './drivers/gpu-driver.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { GpuContainer, GpuContainers } from './gpu-containers.js';
import type { Inventory, Place } from './inventory.js';

/** Why the agent ended a container. */
export interface Ending {
  /** Error text for the callers of functions in the container. */
  text: string;
  /** Whether the function caused it, rather than the platform. */
  byAction: boolean;
  /** An idempotent action may run again elsewhere. */
  again?: true;
}

/** Dependencies of a Healer. */
export interface HealerParts {
  inventory: Inventory;
  gpuContainers: GpuContainers;
  enforcer: ShareEnforcer;
  faultHistory: FaultHistory;
  clock: Clock;
  logger: Logger;
  /** Destroys a container, idle or busy. */
  end(container: Container): void;
  /** The run under way in a container is charged to no namespace. */
  forgive(container: string): void;
}

/** Restarts of an enforcer within ten minutes, at most; then the device is cordoned. */
const maxRestarts = 5;
const restartsWithinMs = 600_000;
/** Faults of whole servers that are told. */
const maxFaults = 8;
/** Endings that are remembered; activations ask for them within moments. */
const maxEndings = 1000;

/** Longest wait for the driver's event of a fault that MPS has told of, and the interval of looks, ms. */
const [eventWithinMs, eventLookMs] = [500, 50];
/** Time after a fault that MPS has told of during which a late event counts as the same fault, ms. */
const handledMs = 2000;

/** Repairs faults of devices, or keeps work off faulty devices. */
export class Healer {
  private readonly endings = new Map<string, Ending>();
  /** Epoch ms of the restarts of each place's enforcer. */
  private readonly restarts = new Map<string, number[]>();

  /** Restarts of the enforcers of each device's places since the process began. */
  readonly restarted = new Map<string, number>();

  /** By device, until when (epoch ms) events of functions' faults tell of one that MPS has told of already. */
  private readonly handledUntil = new Map<string, number>();

  /** By device, when a function's fault last ended all its clients, monotonic ms. */
  private readonly faultedAtMs = new Map<string, number>();

  /** The last faults of functions that ended all clients of an MPS server, oldest first. */
  faults: readonly SharedFault[] = [];

  constructor(private readonly parts: HealerParts) {}

  /** Whether a function's fault has ended all clients of a device since then (monotonic ms). */
  faultSince(device: string, sinceMs: number): boolean {
    return (this.faultedAtMs.get(device) ?? -Infinity) >= sinceMs;
  }

  endingOf(container: string): Ending | undefined {
    return this.endings.get(container);
  }

  /** Handles an event of the driver. */
  note(event: Exclude<DeviceEvent, { type: 'mig-changed' }>): void {
    const { inventory, gpuContainers, logger } = this.parts;
    const { device } = event;
    if (event.type === 'lost') return this.lose(device, 'it does not answer any more');
    if (event.type === 'ecc') return this.fault(device, 'uncorrectable memory error');
    const { class: kind, text } = classifyXid(event.code);
    logger.warn({ device, xid: event.code }, text);
    if (kind === 'lost') this.lose(device, text);
    else if (kind === 'hardware') this.fault(device, text);
    else if (kind === 'function') {
      const isHandled = this.parts.clock.now() < (this.handledUntil.get(device) ?? 0);
      if (!isHandled) this.replaceClients(device, gpuContainers.on(device), text);
    } else inventory.setRecord(device, inventory.record(device));
  }

  /** Marks a device as lost and ends its containers with this reason. */
  lose(device: string, why: string): void {
    const { inventory, gpuContainers } = this.parts;
    if (inventory.isLost(device)) return;
    inventory.lose(device, why);
    for (const one of gpuContainers.on(device)) {
      this.end(one, { text: `The GPU that the action ran on was lost: ${why}.`, byAction: false });
    }
  }

  /** Ends the idle containers of a drained device. */
  drain(device: string): void {
    const { inventory, gpuContainers } = this.parts;
    if (inventory.healthOf(device).state !== 'draining') return;
    const idle = gpuContainers.on(device).filter(({ users }) => users.size === 0);
    for (const one of idle) this.end(one, { text: 'The GPU is being drained.', byAction: false });
  }

  /** Restarts a place's enforcer. The place's containers end with an error, and new ones take their place. */
  async restart(place: Place, problem: string): Promise<void> {
    const { inventory, gpuContainers, clock, logger } = this.parts;
    const { device, slice } = place;
    const id = slice ?? device.uuid;
    const nowMs = clock.now();
    const recent = (this.restarts.get(id) ?? []).filter((at) => nowMs - at < restartsWithinMs);
    if (recent.length >= maxRestarts) return inventory.setTrouble(device.uuid, sharingFails, true);
    inventory.setTrouble(device.uuid, sharingFails, false);
    this.restarts.set(id, [...recent, nowMs]);
    this.restarted.set(device.uuid, (this.restarted.get(device.uuid) ?? 0) + 1);
    logger.warn({ device: device.uuid, slice, problem }, 'the enforcer of shares of a GPU is started again');
    const had = gpuContainers.on(device.uuid).filter(({ grant }) => grant.slice === slice);
    try {
      await inventory.reopen(place);
    } catch (error) {
      logger.error({ device: device.uuid, slice, error: String(error) }, 'a GPU cannot be shared');
    }
    for (const one of had) {
      const text = `The GPU's sharing failed while the action ran: ${problem.replace(/\.$/, '')}.`;
      this.end(one, { text, byAction: false, again: true });
    }
  }

  /** Ends a container and remembers the reason. */
  end(one: GpuContainer, ending: Ending): void {
    const { container, grant } = one;
    one.ending = true;
    this.endings.set(container.id, ending);
    if (this.endings.size > maxEndings) {
      const oldest = this.endings.keys().next();
      if (!oldest.done) this.endings.delete(oldest.value);
    }
    this.parts.logger.warn(
      { container: container.id, devices: grant.devices, reason: ending.text },
      'ended by the agent',
    );
    this.parts.end(container);
  }

  /** Keeps which versions ran when a fault ended all clients. */
  private noteFault(device: string, busy: readonly GpuContainer[]): void {
    if (busy.length === 0) return;
    const users = busy.flatMap((one) => [...one.users.values()]);
    const functions = new Map(
      users.map(({ action, version = '' }) => [`${action} ${version}`, { action, version }] as const),
    );
    const fault = {
      at: this.parts.clock.now(),
      place: busy[0]?.grant.slice ?? device,
      functions: [...functions.values()],
    };
    this.faults = [...this.faults, fault].slice(-maxFaults);
  }

  private fault(device: string, text: string): void {
    const { inventory } = this.parts;
    inventory.setRecord(device, withFault(inventory.record(device), text));
    this.drain(device);
  }

  /**
   * Whether a run that has failed in a container is not known to be the cause: a fault has ended all clients of its MPS server,
   * and other functions ran. The driver's event of the fault may come after the failure, or never. Never rejects.
   */
  async isInnocent(container: string): Promise<boolean> {
    const { gpuContainers, enforcer, clock } = this.parts;
    const one = gpuContainers.get(container);
    const [device = ''] = one?.grant.devices ?? [];
    if (one !== undefined && !one.ending && this.haveOneServer(device) && enforcer.isFaulted !== undefined) {
      const { slice } = one.grant;
      // Other checks find a daemon that does not answer.
      if (!(await enforcer.isFaulted(device, slice).catch(() => false))) return false;
      const untilMs = clock.monotonicMs() + eventWithinMs;
      while (!one.ending && clock.monotonicMs() < untilMs) await sleep(clock, eventLookMs);
      if (!one.ending) {
        this.handledUntil.set(device, clock.now() + handledMs);
        this.replaceClients(device, gpuContainers.at(slice ?? device), 'MPS reports a fatal fault');
      }
    }
    return this.endings.get(container)?.byAction === false;
  }

  /** Whether the functions of a device are clients of one MPS server, so that a fault of one ends all. */
  private haveOneServer(device: string): boolean {
    const { enforcer } = this.parts;
    return enforcer.name.includes('mps') && enforcer.sharing?.(device)?.isShared !== false;
  }

  /**
   * Ends all clients of a device's MPS server after a function's fault, which hits them all. A run that was alone caused it;
   * MPS does not tell which of several did: none of them is charged for, and controllers find out. An action that ran alone,
   * once or several times, is charged with the fault.
   */
  private replaceClients(device: string, clients: readonly GpuContainer[], text: string): void {
    const { faultHistory, clock } = this.parts;
    const there = clients.filter(({ ending }) => !ending);
    const busy = there.filter(({ users }) => users.size > 0);
    const actions = new Set(busy.flatMap(({ users }) => [...users.values()].map(({ action }) => action)));
    const [only] = actions;
    if (only !== undefined && actions.size === 1) faultHistory.note(only, clock.now());
    if (!this.haveOneServer(device)) return;
    this.faultedAtMs.set(device, clock.monotonicMs());
    this.noteFault(device, busy);
    const isKnown = busy.length === 1;
    const ending: Ending = isKnown
      ? { text: `GPU ${device} reported an error while the action ran: ${text}.`, byAction: true }
      : { text: neighboursFault(device, text), byAction: false, again: true };
    for (const one of there) {
      if (!isKnown) this.parts.forgive(one.container.id);
      this.end(one, ending);
    }
  }
}

/** The error of a run that a fault of a neighbour, which MPS does not tell, or its own has ended. */
function neighboursFault(device: string, text: string): string {
  return (
    `A function's fault on GPU ${device} ended this run: ${text}. Functions on one MPS server end together; annotation ` +
    'gpu \'{"isolation":"exclusive"}\' or a MIG slice keeps a function apart. The run is not charged.'
  );
}

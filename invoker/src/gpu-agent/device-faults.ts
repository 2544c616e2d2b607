// Faults of devices: the record of a device's health, the meaning of Xids, and the faults that actions have caused.
import type { DeviceHealth, CordonRequest } from '@gpuwhisk/common/gpu';

/** Troubles of a device on which shares cannot be enforced. */
export const sharingFails = 'the enforcer of its shares fails repeatedly';
export const sharingMissing = 'its share of SMs cannot be enforced';
/** Trouble of a device that is being emptied, since other work uses it past MPS. */
export const foreignWorkThere = 'other work uses it past MPS';
/** Trouble of a device that is being emptied, since it goes over from MPS to time slices or back. */
export const sharingChanges = 'the way in which it is shared is being changed';

/** All reasons against work on a device. */
export interface HealthRecord {
  /** An operator's cordon or drain that is in force. */
  operatorRequest: Exclude<CordonRequest['wish'], 'uncordon'> | undefined;
  /** Why the device counts as lost; undefined if the device answers. */
  lost: string | undefined;
  /** Faults of the hardware, which stay until an operator uncordons the device. */
  faults: readonly string[];
  /** Problems that count only while they are observed, such as memory that an ended process holds. */
  troubles: readonly string[];
}

export const healthyRecord: HealthRecord = { operatorRequest: undefined, lost: undefined, faults: [], troubles: [] };

const maxFaults = 8;

/** The record with a further fault; the same fault counts once. */
export function withFault(record: HealthRecord, fault: string): HealthRecord {
  if (record.faults.includes(fault)) return record;
  return { ...record, faults: [...record.faults, fault].slice(-maxFaults) };
}

/** The record after an operator's uncordon: only observed troubles stay. */
export function uncordoned({ troubles }: HealthRecord): HealthRecord {
  return { ...healthyRecord, troubles };
}

/** Whether work may be placed on a device. Faults of the hardware drain the device; troubles only keep new work off. */
export function healthOf({ operatorRequest, lost, faults, troubles }: HealthRecord): DeviceHealth {
  const operators = operatorRequest === undefined ? [] : [`an operator wants to ${operatorRequest} it`];
  const reasons = [...(lost === undefined ? [] : [lost]), ...operators, ...faults, ...troubles];
  if (lost !== undefined) return { state: 'offline', reasons };
  if (operatorRequest === 'drain' || faults.length > 0) return { state: 'draining', reasons };
  if (operatorRequest === 'cordon' || troubles.length > 0) return { state: 'cordoned', reasons };
  return { state: 'healthy', reasons };
}

/**
 * Meaning of an Xid. `function`: the function's own fault, which ends every client of its MPS server. `hardware`: no new
 * work until an operator uncordons the device. `lost`: the device does not answer. `note`: no consequence.
 */
type XidClass = 'function' | 'hardware' | 'lost' | 'note';

/** Classes and meanings from NVIDIA's document "Xid Errors". */
const known: Readonly<Record<number, readonly [XidClass, string]>> = {
  13: ['function', 'graphics engine exception'],
  31: ['function', 'memory page fault'],
  43: ['function', 'a channel stopped processing'],
  45: ['note', 'channels were removed after an earlier error'],
  48: ['hardware', 'uncorrectable memory error'],
  54: ['lost', 'auxiliary power is not connected'],
  61: ['hardware', 'internal microcontroller breakpoint'],
  62: ['hardware', 'internal microcontroller halt'],
  63: ['note', 'memory row remapping recorded'],
  64: ['hardware', 'memory row remapping failed'],
  69: ['function', 'graphics engine class error'],
  74: ['hardware', 'NVLink error'],
  79: ['lost', 'the device has fallen off the bus'],
  92: ['hardware', 'many corrected memory errors'],
  94: ['function', 'contained memory error'],
  95: ['hardware', 'uncontained memory error'],
  119: ['hardware', 'the system processor does not answer'],
  120: ['hardware', 'the system processor failed'],
};

/** The class of an Xid and its meaning in words. An unknown Xid is a note. */
export function classifyXid(code: number): { class: XidClass; text: string } {
  const [kind, meaning] = known[code] ?? ['note', 'not known'];
  return { class: kind, text: `Xid ${code}: ${meaning}` };
}

/** The GPU faults of actions. An action that caused three within ten minutes gets no GPU. */
export class FaultHistory {
  /** Epoch ms of the faults of each action. */
  private readonly faults = new Map<string, number[]>();

  note(action: string, nowMs: number): void {
    this.faults.set(action, [...this.recent(action, nowMs), nowMs].slice(-maxActionFaults));
    if (this.faults.size <= maxActions) return;
    const oldest = this.faults.keys().next();
    if (!oldest.done) this.faults.delete(oldest.value);
  }

  /** Why the action gets no GPU now; undefined if the action may have one. */
  problem(action: string, nowMs: number): string | undefined {
    const count = this.recent(action, nowMs).length;
    return count < maxActionFaults
      ? undefined
      : `${action} broke a GPU ${count} times within ${withinMs / 60_000} minutes`;
  }

  private recent(action: string, nowMs: number): number[] {
    return (this.faults.get(action) ?? []).filter((at) => nowMs - at < withinMs);
  }
}

const maxActionFaults = 3;
const withinMs = 600_000;
const maxActions = 1000;

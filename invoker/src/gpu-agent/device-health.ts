import type { DeviceHealth, CordonRequest } from '@gpuwhisk/common/gpu';

/** All that is known against a device. */
export interface HealthRecord {
  /** What an operator wants of it and did not take back. */
  wish: Exclude<CordonRequest['wish'], 'uncordon'> | undefined;
  /** It does not answer any more. */
  lost: string | undefined;
  /** Faults of the hardware: they stay until an operator uncordons the device. */
  faults: readonly string[];
  /** What is wrong as long as it is seen, such as memory that a dead process holds. */
  troubles: readonly string[];
}

export const healthyRecord: HealthRecord = { wish: undefined, lost: undefined, faults: [], troubles: [] };

const maxFaults = 8;

/** The record with a fault more; the same fault counts once. */
export function withFault(record: HealthRecord, fault: string): HealthRecord {
  if (record.faults.includes(fault)) return record;
  return { ...record, faults: [...record.faults, fault].slice(-maxFaults) };
}

/** The record after an operator said that the device is in order: what is seen now stays, or is seen again. */
export function uncordoned({ troubles }: HealthRecord): HealthRecord {
  return { ...healthyRecord, troubles };
}

/** Whether work may be placed on a device. Faults of the hardware drain it, what may pass only keeps new work off. */
export function healthOf({ wish, lost, faults, troubles }: HealthRecord): DeviceHealth {
  const operators = wish === undefined ? [] : [`an operator wants to ${wish} it`];
  const reasons = [...(lost === undefined ? [] : [lost]), ...operators, ...faults, ...troubles];
  if (lost !== undefined) return { state: 'offline', reasons };
  if (wish === 'drain' || faults.length > 0) return { state: 'draining', reasons };
  if (wish === 'cordon' || troubles.length > 0) return { state: 'cordoned', reasons };
  return { state: 'healthy', reasons };
}

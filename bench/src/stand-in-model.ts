import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryDir } from './machine.js';

/** A GPU type of the stand-in with its data sheet's values; `smSpeed` is an SM's speed as a multiple of an A100's. */
export interface StandInDevice {
  type: string;
  sms: number;
  memoryGiB: number;
  bandwidthGBs: number;
  smSpeed: number;
}

/** A workload of the papers, with its entry in `native/cudasim/model.json` and the sources of its figures. */
export interface StandInWorkload {
  name: string;
  paper: string;
  fixedMs: number;
  itemMs: number;
  weightsMiB: number;
  itemMiB: number;
  fullBatch: number;
  dram: number;
}

/** Parameters that the stand-in for a GPU and the simulator share. Speeds of devices relate to `reference`. */
export interface StandInModel {
  reference: string;
  devices: StandInDevice[];
  workloads: StandInWorkload[];
}

/** A client of an MPS server that endlessly runs batches of a workload, with at most `percent` of the SMs. */
export interface StandInClient {
  workload: string;
  batch: number;
  percent: number;
}

interface Demand {
  sms: number;
  cap: number;
  /** GB/s per SM-second of the reference. */
  traffic: number;
}

const folder = join(repositoryDir, 'native/cudasim');

/** Reads the shared parameters. */
export function readStandInModel(): StandInModel {
  return JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8')) as StandInModel;
}

function named<T>(rows: readonly T[], name: string, key: (row: T) => string): T {
  const found = rows.find((row) => key(row) === name);
  if (found === undefined) throw new Error(`The stand-in has no ${name}.`);
  return found;
}

/** Solo time of a batch on a whole reference device, ms. */
export function soloMs(workload: StandInWorkload, batch: number): number {
  return workload.fixedMs + batch * workload.itemMs;
}

/** Max-min fair parts of `total`: all rise equally until their cap or the total is reached. */
export function fairParts(caps: readonly number[], total: number): number[] {
  const parts = caps.map(() => 0);
  const rising = caps.map((_, i) => i).sort((a, b) => (caps[a] as number) - (caps[b] as number));
  let left = total;
  rising.forEach((index, done) => {
    const part = Math.min(caps[index] as number, left / (rising.length - done));
    parts[index] = part;
    left -= part;
  });
  return parts;
}

/** Speed of each demand, as a multiple of its speed on the reference device with all SMs that it fills. */
function ratesOf(demands: readonly Demand[], device: StandInDevice): number[] {
  const sms = fairParts(
    demands.map((demand) => Math.min(demand.cap, demand.sms)),
    device.sms,
  );
  const rates = demands.map((demand, i) => ((sms[i] as number) * device.smSpeed) / demand.sms);
  const asked = demands.reduce((sum, demand, i) => sum + (rates[i] as number) * demand.sms * demand.traffic, 0);
  return rates.map((rate) => rate * Math.min(1, device.bandwidthGBs / asked));
}

const demandOf = (model: StandInModel, device: StandInDevice, { workload, batch, percent }: StandInClient): Demand => {
  const reference = named(model.devices, model.reference, (row) => row.type);
  const { fullBatch, dram } = named(model.workloads, workload, (row) => row.name);
  const sms = Math.max(1, Math.round(reference.sms * Math.min(1, batch / fullBatch)));
  const cap = Math.max(1, Math.floor((device.sms * percent) / 100));
  return { sms, cap, traffic: (dram * reference.bandwidthGBs) / reference.sms };
};

/** Behaviour of a client alone on a whole device. */
export interface AloneOnDevice {
  /** Its time over the time on a whole reference device. */
  stretch: number;
  /** Fractions of the device that it uses. */
  smUtil: number;
  dramUtil: number;
}

/** A workload alone on a whole device of type `type`. Throws for unknown names. */
export function aloneOnDevice(model: StandInModel, type: string, workload: string, batch: number): AloneOnDevice {
  const device = named(model.devices, type, (row) => row.type);
  const demand = demandOf(model, device, { workload, batch, percent: 100 });
  const [rate = 0] = ratesOf([demand], device);
  return {
    stretch: 1 / rate,
    smUtil: Math.min(1, demand.sms / device.sms),
    dramUtil: (rate * demand.sms * demand.traffic) / device.bandwidthGBs,
  };
}

/**
 * Slowdown of each client beside the others over its solo time on the whole device: the stand-in's model of contention
 * (native/cudasim/daemon/sharing.cpp) in its steady state. SMs are shared max-min fairly. If the clients demand more
 * bandwidth than the device has, all slow down equally (PROTEAN, section 3). Throws for unknown names.
 */
export function standInSlowdowns(model: StandInModel, type: string, clients: readonly StandInClient[]): number[] {
  const device = named(model.devices, type, (row) => row.type);
  const demands = clients.map((client) => demandOf(model, device, client));
  const together = ratesOf(demands, device);
  return demands.map((demand, i) => {
    const [alone = 0] = ratesOf([{ ...demand, cap: device.sms }], device);
    return alone / (together[i] as number);
  });
}

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

/** A logarithm that is linear in that of the fill. */
interface Line {
  intercept: number;
  byLogFill: number;
}

/** Contention that was fitted to measurements (`native/cudasim/contention/fitted.json`, docs/gpu.md). */
interface FittedContention {
  form: { sharpness: number; bound: number; demand: Line; sensitivity: Line; pressure: Line };
  fullBatch: { workload: string; value: number }[];
  training: { workload: string; sensitivity: number; pressure: number }[];
}

/** Parameters that the stand-in for a GPU and the simulator share. Speeds of devices relate to `reference`. */
export interface StandInModel {
  reference: string;
  devices: StandInDevice[];
  workloads: StandInWorkload[];
  contention: FittedContention;
}

/** A client of an MPS server that endlessly runs batches of a workload, with at most `percent` of the SMs. */
export interface StandInClient {
  workload: string;
  batch: number;
  percent: number;
  isTraining?: boolean;
}

interface Demand {
  /** SMs that it would fill. */
  sms: number;
  cap: number;
  /** Factors on the sensitivity and the pressure that its fill gives it. */
  sensitivity: number;
  pressure: number;
  /** GB/s per SM-second of the reference. */
  traffic: number;
}

const folder = join(repositoryDir, 'native/cudasim');

const readJson = (file: string): unknown => JSON.parse(readFileSync(join(folder, file), 'utf8'));

/** Reads the shared parameters. Batches that fill a device are the measured ones where there are any. */
export function readStandInModel(): StandInModel {
  const model = readJson('model.json') as Omit<StandInModel, 'contention'>;
  const contention = readJson('contention/fitted.json') as FittedContention;
  const fullBatch = new Map(contention.fullBatch.map(({ workload, value }) => [workload, value]));
  const workloads = model.workloads.map((row) => ({ ...row, fullBatch: fullBatch.get(row.name) ?? row.fullBatch }));
  return { ...model, workloads, contention };
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
function ratesOf(demands: readonly Demand[], device: StandInDevice, { form }: FittedContention): number[] {
  const alone = demands.map(({ cap, sms }) => Math.min(cap, sms, device.sms));
  const isOverlapping = demands.reduce((sum, { cap }) => sum + Math.min(cap, device.sms), 0) > device.sms;
  const fills = demands.map(({ sms }, i) => ((sms / device.sms) * (alone[i] as number)) / Math.min(sms, device.sms));
  const valueOf = (line: Line, fill: number, factor: number): number => {
    const value = line.intercept + line.byLogFill * Math.log(fill) + Math.log(factor);
    return Math.exp(form.bound * Math.tanh(value / form.bound));
  };
  const pressures = demands.map(({ pressure }, i) => valueOf(form.pressure, fills[i] as number, pressure));
  const all = pressures.reduce((sum, pressure) => sum + pressure, 0);
  const rates = demands.map((demand, i) => {
    const rate = ((alone[i] as number) * device.smSpeed) / demand.sms;
    if (!isOverlapping) return rate;
    const fill = fills[i] as number;
    const d = valueOf(form.demand, fill, 1);
    const x = d + valueOf(form.sensitivity, fill, demand.sensitivity) * (all - (pressures[i] as number));
    return rate / ((1 + x ** form.sharpness) / (1 + d ** form.sharpness)) ** (1 / form.sharpness);
  });
  const asked = demands.reduce((sum, demand, i) => sum + (rates[i] as number) * demand.sms * demand.traffic, 0);
  return rates.map((rate) => rate * Math.min(1, device.bandwidthGBs / asked));
}

const demandOf = (
  model: StandInModel,
  device: StandInDevice,
  { workload, batch, percent, isTraining = false }: StandInClient,
): Demand => {
  const reference = named(model.devices, model.reference, (row) => row.type);
  const { fullBatch, dram } = named(model.workloads, workload, (row) => row.name);
  const sms = Math.max(1, Math.round(reference.sms * Math.min(1, batch / fullBatch)));
  const cap = Math.max(1, Math.floor((device.sms * percent) / 100));
  const trained = isTraining ? model.contention.training.find((one) => one.workload === workload) : undefined;
  const { sensitivity, pressure } = trained ?? { sensitivity: 1, pressure: 1 };
  return { sms, cap, sensitivity, pressure, traffic: (dram * reference.bandwidthGBs) / reference.sms };
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
  const [rate = 0] = ratesOf([demand], device, model.contention);
  return {
    stretch: 1 / rate,
    smUtil: Math.min(1, demand.sms / device.sms),
    dramUtil: (rate * demand.sms * demand.traffic) / device.bandwidthGBs,
  };
}

/**
 * Slowdown of each client beside the others over its solo time on the whole device: the stand-in's model of contention
 * (native/cudasim/daemon/sharing.cpp) in its steady state. Where the clients' limits are more than the device has, contention is
 * the fitted one. If they demand more bandwidth than the device has, all slow down equally (PROTEAN, section 3). Throws for
 * unknown names.
 */
export function standInSlowdowns(model: StandInModel, type: string, clients: readonly StandInClient[]): number[] {
  const device = named(model.devices, type, (row) => row.type);
  const demands = clients.map((client) => demandOf(model, device, client));
  const together = ratesOf(demands, device, model.contention);
  return demands.map((demand, i) => {
    const [alone = 0] = ratesOf([{ ...demand, cap: device.sms }], device, model.contention);
    return alone / (together[i] as number);
  });
}

// The stage `geometry`: its interface, the state that it shows, and the stage that cuts nothing.
import type { Action } from '../../view/decision.js';
import type { View } from '../../view/view.js';

/** What of a view cuts go by. */
export type CutView = Pick<View, 'at' | 'ledger' | 'functions' | 'devices'>;

/** A cut that a stage wants. */
export type CutAction = Action & { kind: 'cut' };

/** The last evaluation of one type of device. */
export interface GeometryTarget {
  type: string;
  /** Devices of the type that the stage cuts. */
  devices: number;
  /** Best-effort batches that are expected at once on each of them, and their device memory, MiB. */
  bestEffort: number;
  memoryMiB: number;
  /** Least and greatest number of such batches at which the small slices are preferred; absent: they never are. */
  low?: number;
  high?: number;
  /** The wanted profiles; absent: none are wanted yet. */
  profiles?: readonly string[];
  reason: string;
  /** Why devices that are whole stay so; absent: they do not. */
  leftWhole?: string;
}

/** A device at the last evaluation. */
export interface GeometryDevice {
  device: string;
  /** Its profiles, and those that it is being cut into; none: it is whole. */
  profiles: readonly string[];
  cutInto?: readonly string[];
  /** Consecutive evaluations at which it differed from the same target. */
  mismatches: number;
  /** Why it is left as it is; absent: it matches, or it differs for too short a time. */
  left?: string;
}

/** State of a stage `geometry`, for display. */
export interface GeometryReport {
  /** Time of the last evaluation, ms on the clock of the view; absent: none has been made. */
  at?: number;
  targets: readonly GeometryTarget[];
  devices: readonly GeometryDevice[];
  /** The last cuts that the stage has wanted, latest first. */
  cuts: readonly { at: number; device: string; profiles: readonly string[]; reason: string }[];
}

/** The stage that says how devices are cut into slices. It is asked every second and has a period of its own. */
export interface Geometry {
  /** Cuts to begin now. */
  cuts(view: CutView): readonly CutAction[];
  /** Its state; absent in a stage that has none. */
  report?(): GeometryReport;
  /** Plain data that its decisions depend on besides the view, and its counterpart. */
  saved?(): unknown;
  restore?(saved: unknown): void;
}

/** Figures of a report by name: expected batches and MiB of best effort, devices that differ or are cut, cuts wanted. */
export function geometryFigures(report: GeometryReport | undefined): Record<string, number> {
  if (report?.at === undefined) return {};
  const { targets, devices } = report;
  return {
    bestEffort: targets.reduce((sum, one) => sum + one.bestEffort * one.devices, 0),
    bestEffortMiB: targets.reduce((sum, one) => sum + one.memoryMiB * one.devices, 0),
    differing: devices.filter(({ mismatches }) => mismatches > 0).length,
    beingCut: devices.filter(({ cutInto }) => cutInto !== undefined).length,
  };
}

/** Devices stay as they are. */
export const noGeometry: Geometry = { cuts: () => [] };

// The schemes that PROTEAN is compared with, as the paper describes them (sections 2.2, 5 and 6.2).
import type { Batch } from './arrivals.js';
import type { Cluster, Device, Scheme, Slice } from './serving.js';
import { profileAt } from './world.js';

/** A scheme without a look at bandwidth or deadlines: it assigns batches as they come, and each slice serves its own in turn. */
interface AssigningRule {
  geometry: readonly string[];
  /** Batches that run together on a slice. */
  together: number;
  /** Slices of a device have batches in proportion to these; absent: equally. */
  weightOf?(slice: Slice): number;
  /** Which slices a batch may go to; absent: all. */
  mayUse?(batch: Batch, slice: Slice): boolean;
  /** By what factor a batch alone is slower since it may use part of the SMs only; absent: 1. */
  capOf?(batch: Batch): number;
}

/** Clients of one MPS server (NVIDIA's documentation of MPS). */
const mostClients = 48;

/**
 * A batch goes to the device with the fewest batches, as the paper's dispatcher balances load, and there to the slice with the fewest
 * for its weight.
 */
function assigning(rule: AssigningRule): Scheme {
  const { geometry, together, weightOf = () => 1, mayUse = () => true, capOf = () => 1 } = rule;
  const homeless: Batch[] = [];
  let turn = 0;
  const countOf = (slice: Slice): number => slice.runs.length + slice.queue.length;
  const fits = (batch: Batch, slice: Slice): boolean =>
    !slice.isClosed && slice.memoryMiB >= batch.model.memoryMiB && mayUse(batch, slice);
  const assign = (batch: Batch, { devices }: Cluster): boolean => {
    let least: Device | undefined;
    let leastCount = Infinity;
    for (let at = 0; at < devices.length; at += 1) {
      const device = devices[(turn + at) % devices.length] as Device;
      if (!device.slices.some((slice) => fits(batch, slice))) continue;
      const count = device.slices.reduce((sum, slice) => sum + countOf(slice), 0);
      if (count < leastCount) [least, leastCount] = [device, count];
    }
    turn += 1;
    if (least === undefined) return false;
    let chosen: Slice | undefined;
    let chosenLoad = Infinity;
    for (const slice of least.slices) {
      if (!fits(batch, slice)) continue;
      const load = (countOf(slice) + 1) / weightOf(slice);
      if (load < chosenLoad) [chosen, chosenLoad] = [slice, load];
    }
    chosen?.queue.push(batch);
    return true;
  };
  return {
    geometry,
    arrived(batch, cluster) {
      if (!assign(batch, cluster)) homeless.push(batch);
    },
    dispatch(cluster) {
      if (homeless.length > 0) {
        const again = homeless.splice(0);
        for (const batch of again) if (!assign(batch, cluster)) homeless.push(batch);
      }
      for (const { slices } of cluster.devices) {
        for (const slice of slices) {
          for (let next = slice.queue[0]; next !== undefined; next = slice.queue[0]) {
            const isFull = slice.runs.length >= together || slice.freeMiB < next.model.memoryMiB;
            if (isFull || slice.isClosed) break;
            slice.queue.shift();
            cluster.start(next, slice, capOf(next));
          }
        }
      }
    },
  };
}

const whole = ['7g.40gb'] as const;
/** The slices with the most resources (paper, section 2.2), which is also the strongest choice for a static geometry. */
const halves = ['4g.20gb', '3g.20gb'] as const;

/** GPUlet's part of the SMs for strict work, and for the rest (paper, section 6.2: 60 to 65 %). */
const strictPart = 0.625;
/**
 * A cap on SMs leaves the memory bandwidth whole, and is set where more SMs help little: the part of a slice's deficiency that it
 * has. An assumption.
 */
const capEffect = 0.5;

function capOf({ model, isStrict }: Batch): number {
  const part = isStrict ? strictPart : 1 - strictPart;
  const { deficiency } = model;
  // Between the slices of 4/7 and 7/7, and of 2/7 and 3/7 of the SMs, in proportion.
  const [above, below, sizeAbove, sizeBelow] = isStrict
    ? ([0, profileAt('4g.20gb'), 7, 4] as const)
    : ([profileAt('3g.20gb'), profileAt('2g.10gb'), 3, 2] as const);
  const size = part * 7;
  const share = (sizeAbove - size) / (sizeAbove - sizeBelow);
  const [high = 1, low = 1] = [deficiency[above], deficiency[below]];
  return 1 + capEffect * (high + (low - high) * share - 1);
}

/** Schemes of the paper's evaluation, by name. */
export const baselines: Readonly<Record<string, () => Scheme>> = {
  molecule: () => assigning({ geometry: whole, together: 1 }),
  infless: () => assigning({ geometry: whole, together: mostClients }),
  naive: () => assigning({ geometry: halves, together: mostClients, weightOf: ({ memoryMiB }) => memoryMiB }),
  gpulet: () => assigning({ geometry: whole, together: mostClients, capOf }),
};

/** The five schemes of figure 2, by name. */
export const figure2Schemes: Readonly<Record<string, () => Scheme>> = {
  neither: () => assigning({ geometry: whole, together: 1 }),
  mps: () => assigning({ geometry: whole, together: mostClients }),
  mig: () => assigning({ geometry: halves, together: 1 }),
  both: () => assigning({ geometry: halves, together: mostClients }),
  smart: () =>
    assigning({
      ...{ geometry: halves, together: mostClients },
      mayUse: ({ isStrict }, { profile }) => isStrict === (profile === '4g.20gb'),
    }),
};

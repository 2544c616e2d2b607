/** How long the start of a job takes under a policy, and where that is from. */
export interface PolicyStart {
  /** Of a process of its own; a start in one that was kept takes no time. */
  coldMs: number;
  source: string;
}

/** Time of an injection into a warm process (FaaShare, figure 8). */
export const injectionMs = 12;
/** Time of loading PyTorch and cuDNN, which injection saves (FaaShare, figure 8). */
export const coldStartMs = 1800;

const ofOpenWhisk = 'a container with PyTorch and cuDNN without pre-warming: FaaShare, figure 8';
const ofNone = "no figure of its paper at hand; FaaShare's unoptimised platform, figure 8";

/** Start of every policy that a replay compares; of the others, FaaShare's unoptimised platform. */
const starts: Readonly<Record<string, PolicyStart>> = {
  faashare: { coldMs: injectionMs, source: 'injection into a pre-warmer: FaaShare, figure 8' },
  elasticflow: { coldMs: coldStartMs, source: ofNone },
  tgs: { coldMs: coldStartMs, source: ofNone },
  fluidfaas: { coldMs: coldStartMs, source: ofNone },
  'fast-gshare': { coldMs: coldStartMs, source: ofNone },
};

/** The start of a policy on its own platform. */
export function startOf(policy: string): PolicyStart {
  return starts[policy] ?? { coldMs: coldStartMs, source: ofOpenWhisk };
}

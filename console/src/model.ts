// What the API answers about GPUs, as far as the console shows it. Fractions are 0 to 1.

/** A GPU. */
export interface GpuDevice {
  invoker: string;
  uuid: string;
  index: number;
  name: string;
  type: string;
  mode: 'exclusive' | 'timeslice' | 'mps' | 'mig';
  memoryMiB: number;
  usedMemoryMiB?: number;
  utilisation?: number;
  simulated: boolean;
  slices: { uuid: string; profile: string; memoryMiB?: number; startSlot?: number; slots?: number }[];
  health: { state: string; reasons?: string[] };
  cut?: { profiles: string[]; state: string; reason?: string };
  functions: GpuFunction[];
  workloads: { id: string; name: string; since: number; memoryMiB?: number; mpsPercent?: number }[];
}

/** An instance of a function on a GPU. Without names where it is another namespace's. */
export interface GpuFunction {
  action?: string;
  namespace?: string;
  container?: string;
  slice?: string;
  share: number;
  smRequest: number;
  smLimit: number;
  memoryMiB: number;
  heldMiB?: number;
  running: number;
  /** The function that runs beside it while nothing is measured of the two. */
  sets?: { text: string }[];
}

/** What was on a GPU in the last ten minutes. Times are epoch ms and ms. */
export interface GpuDeviceHistory {
  samples: { at: number; usedMemoryMiB: number; utilisation?: number }[];
  instances: {
    container?: string;
    action?: string;
    slice?: string;
    smLimit: number;
    memoryMiB: number;
    from: number;
    until?: number;
  }[];
  runs: { activationId: string; action: string; at: number; predictedMs: number; actualMs: number }[];
}

/** The policy in force. */
export interface GpuPolicy {
  policy: string;
  /** The configured policy. */
  configured: string;
  /** Absent: the configured policy is in force. */
  set?: { at: number; by?: string };
  /** The policy that the platform has undone last. */
  undone?: { at: number; policy: string; why: string };
  admission: string;
  decides: boolean;
  stages: Record<string, string>;
  settings: Record<string, Record<string, number>>;
  settingNotes: Record<string, { meaning: string; source: 'configuration' | 'operator' | 'policy' | 'default' }>;
  /** Parts without effect on the cluster as it is. */
  inert: { stage: string; part: string; why: string; mend: string }[];
  choices: { policies: Record<string, string>; stages: Record<string, string[]> };
  functions: number;
  sharedSets: number;
  shareChoices: Record<string, { choices: number; taken: number; savedMs: number }>;
  models: {
    gpuType: string;
    mode: string;
    version: number;
    sampleCount: number;
    learnedAt?: number;
    error?: number;
    runs?: number;
  }[];
  geometry?: unknown;
}

/** How arrivals fared under a policy. */
export interface PolicyTrialResult {
  policy: string;
  meanWaitMs: number;
  p99WaitMs: number;
  meanMs: number;
  missed: number;
  withSlo: number;
  refused: number;
  stopped: number;
  gpuHours: number;
  problem?: string;
}

/** The result of a trial: the policy in force, then the other one. */
export interface PolicyTrial {
  arrivals: number;
  leftOut: number;
  gpus: number;
  results: PolicyTrialResult[];
}

/** Costs of the last days. */
export interface GpuCost {
  from: string;
  to: string;
  functions: { namespace: string; action: string; gpuSeconds: number; cost: number }[];
  markets?: { market: string; hours: number; cost: number; idle: number; boot: number }[];
  idle?: number;
  boot?: number;
  total: number;
}

/** A controller or an invoker. */
export interface ClusterMember {
  id: string;
  sort: 'controller' | 'invoker';
  state: string;
  decides?: boolean;
  answers?: boolean;
}

/** Nodes with GPUs, and rented machines. */
export interface GpuNodes {
  wanted?: number;
  nodes: {
    invoker?: string;
    state: string;
    labels: Record<string, string>;
    market?: string;
    pricePerHour?: number;
    why?: string;
    leavesAt?: number;
    machine?: string;
    devices: string[];
    running: number;
  }[];
}

// Parts of a policy that cannot work on the cluster as it is, each with the command that mends it.
import type { Device, NodeStatus } from '@gpuwhisk/common/gpu';
import { profilesOf } from '../stages/geometry/mig-profiles.js';
import { holdsToShares } from '../view/shares.js';
import type { Composition } from './make-policy.js';
import { stagesCan } from './stages.js';
import type { StageName } from './stages.js';

/** A part of a policy without effect on the cluster as it is. */
export interface InertPart {
  stage: StageName;
  /** The implementation of the stage, or what it lacks of its work. */
  part: string;
  why: string;
  /** The command that mends it; of a cluster, the setting of its processes. */
  mend: string;
}

/** The facts of a cluster that parts of policies depend on. */
export interface ClusterFacts {
  nodes: readonly Pick<NodeStatus, 'devices' | 'movesShares' | 'cuts'>[];
  /** Number of workloads that are known. */
  workloads: number;
  /** Whether trials have found request and limit of any function. */
  isProfiled: boolean;
  /** Whether machines can be rented. */
  rents: boolean;
  /** Whether models are trained. */
  trains: boolean;
  /** Whether controllers and invokers are processes of their own. */
  isCluster: boolean;
}

interface Rule {
  /** Implementations that the rule is about, by stage. */
  of: Partial<Record<StageName, readonly string[]>>;
  /** Undefined: the parts work. */
  lack(facts: ClusterFacts): Omit<InertPart, 'stage' | 'part'> | undefined;
}

const set = ({ isCluster }: ClusterFacts, setting: string, of = 'invokers'): string =>
  isCluster ? `set ${setting} for the ${of} and start them again` : `npm start -- --set ${setting}`;
const devicesOf = ({ nodes }: ClusterFacts): Device[] => nodes.flatMap(({ devices }) => devices);
const typesOf = (devices: readonly Device[]): string => [...new Set(devices.map(({ type }) => type))].join(', ');

const rules: readonly Rule[] = [
  {
    // A share without a limit ahead of the process is none: the driver's time slices are equal.
    of: { plan: ['sub-queues', 'by-degradation'], share: ['filling', 'dilu'] },
    lack(facts) {
      const { nodes } = facts;
      const holds = ({ devices, movesShares = false }: ClusterFacts['nodes'][number]): boolean =>
        devices.some(({ mode, returnsToMps }) => holdsToShares(mode) || returnsToMps === true || movesShares);
      if (nodes.some(holds)) return undefined;
      const isExclusive = nodes.every(({ devices }) => devices.every(({ mode }) => mode === 'exclusive'));
      return isExclusive
        ? {
            why: 'every GPU is in exclusive mode without MPS, so that one function at a time runs there',
            mend: set(facts, 'gpu.manage.mps=true'),
          }
        : { why: 'no GPU has MPS, so that functions are not held to shares', mend: set(facts, 'gpu.manage.mps=auto') };
    },
  },
  {
    of: { share: ['dilu'] },
    lack: (facts) =>
      facts.nodes.some(({ movesShares }) => movesShares === true)
        ? undefined
        : {
            why: 'no GPU has kernel tokens, so that shares do not move between request and limit',
            mend: set(facts, 'gpu.tokens=true'),
          },
  },
  {
    of: { plan: ['by-degradation'], place: ['smore'], preempt: ['workload-guard'] },
    lack: ({ workloads }) =>
      workloads > 0
        ? undefined
        : {
            why: 'no workload is registered that functions could run beside',
            mend: 'wsk gpu workload run --name NAME -- COMMAND',
          },
  },
  { of: { geometry: ['protean'] }, lack: (facts) => lackOfCuts(facts) },
  {
    of: { procure: ['protean'] },
    lack: (facts) =>
      facts.rents
        ? undefined
        : {
            why: 'no provider of machines is set up',
            mend: facts.isCluster
              ? set(facts, 'gpu.procure.provider', 'controllers')
              : 'npm run cluster -- --set gpu.procure.provider=emulated',
          },
  },
  {
    of: { scale: ['smore', 'dilu-smore'] },
    lack: (facts) =>
      facts.trains
        ? undefined
        : { why: 'no forecast is trained', mend: set(facts, 'gpu.learning.retrain=true', 'controllers') },
  },
];

function lackOfCuts(facts: ClusterFacts): ReturnType<Rule['lack']> {
  const able = facts.nodes.filter(({ devices }) => devices.some(canBeCut));
  if (able.length === 0) {
    const devices = devicesOf(facts);
    return {
      why: `MIG cuts no GPU of type ${typesOf(devices)}`,
      mend: devices.every(({ simulated }) => simulated) ? 'npm start -- --gpus sim:a100-40' : 'wsk gpu policy set auto',
    };
  }
  // A node that does not tell may cut.
  if (able.some(({ cuts = true }) => cuts)) return undefined;
  return { why: 'no node may cut its GPUs into slices', mend: set(facts, 'gpu.manage.mig=true') };
}

function canBeCut({ type, mode }: Device): boolean {
  return mode === 'mig' || profilesOf(type).length > 0;
}

/**
 * The parts of a policy that have no effect on a cluster with these facts, in the order of the policy's stages. Empty while no
 * GPU is known.
 */
export function inertParts({ stages: chosen }: Pick<Composition, 'stages'>, facts: ClusterFacts): InertPart[] {
  if (devicesOf(facts).length === 0) return [];
  const found = (Object.entries(chosen) as [StageName, string][]).flatMap(([stage, part]) =>
    rules
      .filter(({ of }) => of[stage]?.includes(part) === true)
      .flatMap((rule): InertPart[] => {
        const lack = rule.lack(facts);
        return lack === undefined ? [] : [{ stage, part, ...lack }];
      }),
  );
  return [...found, ...unprofiled(chosen, facts)];
}

/** Stages that give functions the request and limit of their profiles; those of policy modules, too. */
function unprofiled(chosen: Composition['stages'], facts: ClusterFacts): InertPart[] {
  return (Object.entries(chosen) as [StageName, string][])
    .filter(([stage, part]) => stagesCan('usesProfiledShares', { [stage]: part }) && !facts.isProfiled)
    .map(([stage, part]) => ({
      ...{ stage, part },
      why: 'no function has been profiled, so that requests and limits are assumed',
      mend: 'wsk gpu profile ACTION_NAME',
    }));
}

/** The line that tells of an inert part. */
export function inertLine({ stage, part, why, mend }: InertPart): string {
  return `${stage} ${part}: ${why}; ${mend}`;
}

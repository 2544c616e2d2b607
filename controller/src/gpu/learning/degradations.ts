// Degradations beside workloads, learned from runs of functions and from reports of workloads (SMORE).
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import { keepNewest } from '@gpuwhisk/common/collections';
import { asMember, ofTime } from '@gpuwhisk/gpu/predict/degradation';
import type { DegradationModel, SetMember } from '@gpuwhisk/gpu/predict/degradation';
import type { Member, PairDrift } from '@gpuwhisk/gpu/predict/degradation-predictor';
import { haveSameFeatures } from '@gpuwhisk/gpu/predict/degradation-table';
import type { MemberKind, PairModel, PairModelKey } from '@gpuwhisk/gpu/predict/pair-degradation';
import type { MeasuredPair, MeasuredSide } from '@gpuwhisk/gpu/predict/pair-samples';
import type { FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';
import type { SmoreDegradationState } from '@gpuwhisk/gpu/predict/smore-degradation';
import type { FunctionProfiles } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import type { Neighbour } from '@gpuwhisk/gpu/stages/profile/run-log';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import { functionKeyOf } from '@gpuwhisk/gpu/ledger/occupancy';
import { kindOf } from '@gpuwhisk/gpu/ledger/places';
import { tasksOn } from '@gpuwhisk/gpu/view/running';
import { takesWork } from '@gpuwhisk/gpu/ledger/used-places';
import type { Task, View, WorkloadState } from '@gpuwhisk/gpu/view/view';
import { workloadMember } from '@gpuwhisk/gpu/stages/place/set-effects';

/** A function of which requests have come, as its last one. */
export interface KnownFunction {
  /** `/namespace/action` of its code. */
  function: string;
  version: string;
  batch: number;
  memoryMiB: number;
  /** The largest class of its share, percent; absent: any. */
  maxShareClass?: number;
  /** Figures of its annotation; absent: none. */
  declared?: FeatureRecord;
}

/** Where functions that were called are looked up. */
export interface KnownFunctions {
  all(): Iterable<KnownFunction>;
  /** By the key of its instances. */
  ofKey(key: string): KnownFunction | undefined;
}

/** Dependencies of Degradations. */
interface DegradationsParts {
  /** Called when something was learned. */
  onChange(): void;
  /** Time of a function alone with its usual inputs, ms. */
  aloneMs: FunctionProfiles['usualAloneMs'];
  /** Takes the measured degradation of a pair that was alone together. */
  measured(key: PairModelKey, pair: Omit<MeasuredPair, 'at'>): void;
}

/** What ran beside a workload when it was looked at last. */
interface Look {
  reportedAt: number;
  /** The workloads and functions of its device. */
  set: string;
}

/** Members of a kind of GPU that are known; beyond that the one that was asked for least recently is forgotten. */
const mostMembers = 1024;
/** Workloads and functions whose pairs are computed ahead: those asked for last. Their 2,304 pairs take about 20 ms. */
const mostInTable: Readonly<Record<MemberKind, number>> = { workload: 16, function: 32 };

/** The members that were predicted on a kind of GPU, by kind, name and share. */
type Members = Map<string, Member>;

/** The predictor of degradations, and what feeds it. */
export class Degradations {
  private predictor = new SmoreDegradation(predictorOptions);
  private looks = new Map<string, Look>();
  /** By kind of GPU. */
  private readonly members = new Map<string, Members>();
  private known: KnownFunctions = { all: () => [], ofKey: () => undefined };

  constructor(private readonly parts: DegradationsParts) {}

  /** Sets where functions are looked up. */
  showFunctions(known: KnownFunctions): void {
    this.known = known;
  }

  /** Functions that were called, if the policy in force asks for degradations. */
  functions(): Iterable<KnownFunction> {
    return this.known.all();
  }

  /** The model of a type of GPU in one mode, with all that is learned later. */
  modelOf(key: GpuKind): DegradationModel {
    // Placement asks for all pairs of the same objects.
    const members = new WeakMap<SetMember, Member>();
    const knownTo = (member: SetMember): Member => {
      const known = members.get(member) ?? this.memberOf(key, member);
      members.set(member, known);
      return known;
    };
    return {
      term: (victim, neighbour, neighbours) =>
        this.predictor.term(key, knownTo(victim), knownTo(neighbour), neighbours),
    };
  }

  /**
   * Learns from a warm run of a function beside these workloads and neighbours, all of which were there all the time.
   * `soloMs`: its time alone.
   */
  ran(
    { task, gpu, share, ranMs }: ObservedRun,
    workloads: readonly WorkloadState[],
    neighbours: readonly Neighbour[],
    soloMs: number,
  ): void {
    const sides = [
      ...workloads.map((one) => this.workloadSide(gpu, one)),
      ...[{ task, share }, ...neighbours].map((one) => this.functionSide(gpu, one)),
    ];
    this.observe(gpu, sides, workloads.length, ranMs / soloMs - 1, 'run');
  }

  /**
   * Learns from reports of workloads that came since the look before, if the same functions ran on the device then and now.
   * Called each second.
   */
  look(view: Pick<View, 'at' | 'ledger' | 'runs' | 'workloads'>): void {
    const { workloads = [] } = view;
    const looks = new Map<string, Look>();
    for (const workload of workloads) {
      const account = view.ledger.ledger.account(workload.device);
      const { reportedAt } = workload;
      if (account === undefined || !takesWork(account.health) || reportedAt === undefined) continue;
      const running = tasksOn(view, account);
      const gpu = kindOf(account.place);
      const beside = workloads.filter(({ device }) => device === workload.device);
      const functions = running.map(functionMember);
      const set = JSON.stringify([beside.map(({ id }) => id), functions.map(({ name, share }) => [name, share])]);
      const last = this.looks.get(workload.id);
      looks.set(workload.id, { reportedAt, set });
      const isNew = last !== undefined && last.reportedAt < reportedAt && last.set === set;
      if (!isNew || workload.measured === undefined || functions.length === 0) continue;
      const sides = [
        ...beside.map((one) => this.workloadSide(gpu, one)),
        ...running.map((one) => this.functionSide(gpu, one)),
      ];
      this.observe(gpu, sides, beside.indexOf(workload), ofTime(workload.measured), 'report');
    }
    this.looks = looks;
  }

  /** A model predicts from now on; `isFirst`: its pairs were predicted by their figures before. */
  use(model: PairModel, isFirst: boolean): void {
    this.predictor.put(model);
    this.precomputeOf(model);
    if (!isFirst) return;
    this.predictor.forgetCorrections(model);
    this.parts.onChange();
  }

  /** Pairs are predicted by their figures from now on. */
  withdraw(key: PairModelKey): void {
    if (!this.predictor.withdraw(key)) return;
    this.predictor.forgetCorrections(key);
    this.parts.onChange();
  }

  /** Computes the pairs of the members that were asked for last, for every kind of GPU with a model. */
  precompute(): void {
    const keys = new Map(this.predictor.models().map((model) => [kindName(model), model]));
    for (const key of keys.values()) this.precomputeOf(key);
  }

  /** Pairs whose measurements depart from their predictions, the furthest first. */
  drifts(): PairDrift[] {
    return this.predictor.drifts();
  }

  /** All that was learned but the models of pairs, as JSON text. */
  text(): string {
    return JSON.stringify(this.predictor.state(false));
  }

  /** Takes what `text` gave. Throws RangeError for a state of another format or version. */
  restore(text: string): void {
    const restored = new SmoreDegradation(predictorOptions, JSON.parse(text) as SmoreDegradationState);
    for (const model of this.predictor.models()) restored.put(model);
    this.predictor = restored;
  }

  private precomputeOf(gpu: GpuKind): void {
    const members = this.members.get(kindName(gpu)) ?? (new Map() as Members);
    const last = (wanted: MemberKind): Member[] =>
      [...members.values()].filter(({ kind }) => kind === wanted).slice(-mostInTable[wanted]);
    this.predictor.precompute(gpu, last('workload'), last('function'));
  }

  /** A member with all that is known of it. */
  private memberOf(key: GpuKind, member: SetMember): Member {
    const name = kindName(key);
    const members = this.members.get(name) ?? (new Map() as Members);
    this.members.set(name, members);
    const id = `${member.kind} ${member.share} ${member.name}`;
    const features = this.featuresOf(key, member);
    const found = members.get(id);
    const now: Member = asMember({ ...member, ...(features && { record: features }) }, 0);
    // Predictions are remembered by the object.
    const known = found !== undefined && haveSameFeatures(found, now) ? found : now;
    keepNewest(members, id, known, mostMembers);
    return known;
  }

  /** The figures that pair models read of a member; undefined if nothing is known of it. */
  private featuresOf(gpu: GpuKind, { kind, name, record, share }: SetMember): FeatureRecord | undefined {
    const known = kind === 'function' ? this.known.ofKey(name) : undefined;
    if (known === undefined) return record && { ...record, share };
    return pairFeatures(record, { ...known, soloMs: this.parts.aloneMs(known, gpu), share });
  }

  private workloadSide(gpu: GpuKind, workload: WorkloadState): Side {
    const member = workloadMember(workload);
    return this.sideOf(gpu, member, member.name);
  }

  private functionSide(gpu: GpuKind, run: { task: Task; share: number }): Side {
    const { task } = run;
    return { ...this.sideOf(gpu, functionMember(run), task.function), version: task.version };
  }

  private sideOf(gpu: GpuKind, set: SetMember, name: string): Side {
    return { name, share: set.share, member: this.memberOf(gpu, set) };
  }

  /** Learns the measured degradation of the side at `at`; of a pair it also becomes a sample for the model. */
  private observe(
    { gpuType, mode }: GpuKind,
    sides: readonly Side[],
    at: number,
    degradation: number,
    from: MeasuredPair['from'],
  ): void {
    const members = sides.map(({ member }, id) => ({ ...member, id: `${id}` }));
    const [observed] = this.predictor.observe({ gpuType, mode, members }, [{ id: `${at}`, degradation }]);
    if (observed?.refused === undefined) this.parts.onChange();
    const victim = sides[at];
    const [neighbour, ...others] = sides.filter((side) => side !== victim);
    if (victim === undefined || neighbour === undefined || others.length > 0) return;
    const key = { gpuType, mode, victim: victim.member.kind, neighbour: neighbour.member.kind };
    this.parts.measured(key, { victim: measuredSide(victim), neighbour: measuredSide(neighbour), degradation, from });
  }
}

/** A member of a device's set, and the name that its pairs are kept under. */
type Side = Omit<MeasuredSide, 'features'> & { member: Member };

const measuredSide = ({ member, ...side }: Side): MeasuredSide => ({ ...side, features: member.features ?? {} });

/** A side without features was not in the samples by which a model was found better than figures. */
const predictorOptions = { featureless: 'figures' } as const;

/**
 * The figures of a function that pair models read: those of `record` (annotation and profile), its need of memory and its
 * batch unless these are among them, and its time alone.
 */
export function pairFeatures(
  record: FeatureRecord | undefined,
  own: Pick<KnownFunction, 'batch' | 'memoryMiB'> & { soloMs: number | undefined; share: number },
): FeatureRecord {
  const { batch, memoryMiB, soloMs, share } = own;
  return { memoryMiB, batch, ...(soloMs !== undefined && { soloMs }), ...record, share };
}

/** A running function as a member of a set, by the name that placement knows it by. */
function functionMember({ task, share }: { task: Task; share: number }): SetMember {
  const record = task.featureRecord ?? (task.features as FeatureRecord | undefined);
  return { kind: 'function', name: functionKeyOf(task), share, ...(record && { record }) };
}

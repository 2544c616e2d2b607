/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices are below the lengths of non-empty arrays; a placement has one device and an invoker with an agent. */
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { Device, DeviceStatus, NodeStatus, Placement, Resident, Share, ShareClass } from '@gpuwhisk/common/gpu';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { placeLeastLoaded } from '@gpuwhisk/gpu/stages/place/least-loaded';
import type { PlacementLimits } from '@gpuwhisk/gpu/stages/place/least-loaded';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import type { PlacementStamp } from '@gpuwhisk/gpu/stages/place/least-loaded';
import { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import { medianOf } from '../bench.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { percentile } from '../statistics.js';
import { diluPlacements } from './decide-dilu.js';
import { proteanDecisions } from './decide-protean.js';
import { bySmore } from './decide-smore.js';

const perNode = 8;
const functionCount = 200;
const namespaces = 20;
const warmUps = 3000;
const events = 6000;
/** Number of events between two comparisons of both fits on the same state. */
const compareEvery = 20;
const fullness = [0.7, 0.95];
const sizes = [
  { devices: 8, fit: 'best', name: '8' },
  { devices: 1024, fit: 'best', name: '1024' },
  { devices: 1024, fit: 'first', name: '1024fast' },
  { devices: 10_000, fit: 'first', name: '10000fast' },
] as const;

const share = (shareClass: ShareClass, memoryMiB: number): Share => ({
  shareClass,
  smRequest: shareClass / 100,
  smLimit: shareClass / 100,
  memoryMiB,
});

/** The request of one function, the same each time. */
function requestOf(number: number): PlacementRequest {
  const classes = shareClasses.filter((one) => one <= 50);
  const asked = share(classes[number % classes.length]!, 2000 + (number % 7) * 1500);
  const namespace = `n${number % namespaces}`;
  return {
    action: `/${namespace}/f${number}`,
    namespace,
    share: asked,
    memoryMiB: asked.memoryMiB,
    gpus: 1,
    batch: 1,
    isolation: 'shared',
    isBounded: false,
  };
}

const requests = Array.from({ length: functionCount }, (_, number) => requestOf(number));

/** A simulated agent: the row of its node and the instances on its devices. */
class AgentOfNode {
  residents: Resident[] = [];
  private readonly devices: Device[];
  private readonly status: DeviceStatus[];
  private version = 0;
  private containers = 0;

  constructor(
    readonly invoker: string,
    count: number,
  ) {
    const uuids = Array.from({ length: count }, (_, at) => `GPU-${invoker}-${at}`);
    this.devices = uuids.map((uuid, index) => ({
      uuid,
      index,
      name: 'NVIDIA A100-SXM4-80GB',
      type: 'a100-80',
      smCount: 108,
      memoryMiB: 81_920,
      mode: 'mps',
      slices: [],
      simulated: true,
    }));
    // Every second device has a workload beside the platform's instances.
    this.status = uuids.map((uuid, at) => ({
      uuid,
      at: 0,
      usedMemoryMiB: 0,
      health: { state: 'healthy', reasons: [] },
      processes: at % 2 === 0 ? [{ pid: 1000 + at, memoryMiB: 12_000 }] : [],
    }));
  }

  get uuids(): string[] {
    return this.devices.map(({ uuid }) => uuid);
  }

  row(): NodeStatus {
    this.version += 1;
    const { invoker, version, devices, status } = this;
    return { invoker, version, at: 0, devices, status, residents: this.residents.map((one) => ({ ...one })) };
  }

  /** Starts an activation at its placement. */
  take(id: string, { devices, reclaim = [], share: given }: Placement, { action, namespace }: PlacementRequest): void {
    this.residents = this.residents.filter(({ container }) => !reclaim.includes(container));
    const warm = this.residents.find(
      (one) => one.action === action && one.device === devices[0] && one.activations.length === 0,
    );
    if (warm !== undefined) warm.activations = [id];
    else {
      const container = `${this.invoker}-${(this.containers += 1)}`;
      this.residents.push({
        container,
        action,
        namespace,
        isolation: 'shared',
        device: devices[0]!,
        share: given,
        memoryMiB: given.memoryMiB,
        activations: [id],
      });
    }
  }

  /** Ends an activation; its instance becomes idle if `keeps`. */
  end(id: string, keeps: boolean): void {
    const at = this.at(({ activations }) => activations.includes(id));
    if (keeps) this.residents[at]!.activations = [];
    else this.residents.splice(at, 1);
  }

  private at(is: (one: Resident) => boolean): number {
    const at = this.residents.findIndex(is);
    if (at < 0) throw new Error('the agent has no such instance');
    return at;
  }
}

interface World {
  ledger: Ledger;
  agents: Map<string, AgentOfNode>;
  /** Running activations with their agents. */
  running: { id: string; agent: AgentOfNode }[];
}

const pick = <One>(random: Random, from: readonly One[]): One => from[random.uint32() % from.length]!;

/** A cluster in which the part `full` of the SMs is given away, in three to four instances a device. */
function fill(devices: number, full: number, random: Random): World {
  const world: World = { ledger: new Ledger(), agents: new Map(), running: [] };
  for (let at = 0; at * perNode < devices; at += 1) {
    const agent = new AgentOfNode(`invoker${at}`, Math.min(perNode, devices - at * perNode));
    for (const device of agent.uuids) {
      for (let load = 0; ;) {
        const request = pick(random, requests);
        load += request.share.smRequest;
        if (load > full + 0.1 * (randomFraction(random) - 0.5)) break;
        const id = `first-${device}-${agent.residents.length}`;
        const { invoker } = agent;
        agent.take(id, { invoker, devices: [device], share: request.share, at: 0, epoch: 1, version: 0 }, request);
        world.running.push({ id, agent });
      }
    }
    world.agents.set(agent.invoker, agent);
    world.ledger.heard(agent.row(), 0);
  }
  return world;
}

/**
 * Microseconds of events, of alternatives' texts and of rows; and the fraction of requests that first fit could not
 * place.
 */
interface Times {
  eventUs: number[];
  explainUs: number[];
  rowUs: number[];
  lost: number;
}

/** Finds a place for a request, as a policy does. */
export type Placing = (
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
) => PlacementChoice;

/**
 * Microseconds of events: the end of a run is counted, and one request is filtered, placed and held. Two costs are
 * timed apart: alternatives get their texts and ranks when a record of the decision is first read, and rows of agents
 * arrive between events.
 */
function run(
  world: World,
  fit: 'best' | 'first',
  random: Random,
  place: Placing = placeLeastLoaded,
  timed = events,
): Times {
  const { ledger, agents, running } = world;
  const eventUs: number[] = [];
  const explainUs: number[] = [];
  const rowUs: number[] = [];
  let [best, first, alternatives] = [0, 0, 0];
  const limits: PlacementLimits = { kept: new Set(), isOpen: (invoker) => ledger.seenMs(invoker) >= 0, fit };
  const stamp = { epoch: 1, at: 0 };
  const hear = (agent: AgentOfNode): void => {
    const row = agent.row();
    const from = performance.now();
    ledger.heard(row, 0);
    rowUs.push((performance.now() - from) * 1000);
  };
  const untimed = Math.min(warmUps, timed);
  for (let event = 0; event < untimed + timed; event += 1) {
    const at = random.uint32() % running.length;
    const ended = running[at]!;
    const request = pick(random, requests);
    const id = `run-${event}`;
    const from = performance.now();
    ledger.end(ended.id);
    const choice = place(ledger, request, limits, stamp);
    const { placement, reuses } = choice;
    if (placement !== undefined) {
      const { action, namespace, isolation } = request;
      const reservation = { activationId: id, action, namespace, isolation, placement, ended: false };
      ledger.hold(reuses === undefined ? reservation : { ...reservation, reuses }, Infinity);
    }
    const decided = performance.now();
    eventUs.push((decided - from) * 1000);
    alternatives += choice.rejected.length;
    explainUs.push((performance.now() - decided) * 1000);
    ended.agent.end(ended.id, random.uint32() % 4 === 0);
    running[at] = running.at(-1)!;
    running.pop();
    hear(ended.agent);
    if (placement !== undefined) {
      const agent = agents.get(placement.invoker)!;
      agent.take(id, placement, request);
      running.push({ id, agent });
      hear(agent);
    }
    if (event % compareEvery !== 0) continue;
    const probe = pick(random, requests);
    best += Number(placeLeastLoaded(ledger, probe, { ...limits, fit: 'best' }, stamp).placement !== undefined);
    first += Number(placeLeastLoaded(ledger, probe, { ...limits, fit: 'first' }, stamp).placement !== undefined);
  }
  if (alternatives === 0) throw new Error('no alternative was kept');
  return {
    eventUs: eventUs.slice(untimed),
    explainUs: explainUs.slice(untimed),
    rowUs: rowUs.slice(untimed),
    lost: best === 0 ? 0 : 1 - first / best,
  };
}

/** Microseconds of SMORE's decisions on clusters that are 70 and 95 % full, `timed` of each. */
export function smoreDecisions(devices: number, fit: 'best' | 'first', timed: number): number[] {
  return fullness.flatMap((full) => {
    const world = fill(devices, full, seededRandom(7));
    const place = bySmore(world.ledger, fit, seededRandom(9));
    return run(world, fit, seededRandom(8), place, timed).eventUs;
  });
}

function measure({ say }: BenchContext): Measurement[] {
  // Run first, since the clusters of the other part would add garbage collection to its times.
  const measured = [...diluPlacements(say), ...proteanDecisions(say)];
  for (const { devices, fit, name } of sizes) {
    const all = fullness.map((full) => run(fill(devices, full, seededRandom(7)), fit, seededRandom(8)));
    const eventUs = all.flatMap((one) => one.eventUs);
    const [low, high] = all.map((one) => medianOf('', one.eventUs).value);
    say(`  ${name} devices: ${low?.toFixed(1)} µs at 70 % full, ${high?.toFixed(1)} at 95 %`);
    measured.push(
      medianOf(`decisionUs.${name}`, eventUs),
      { name: `decisionP99Us.${name}`, value: percentile(eventUs, 99) },
      medianOf(
        `explainUs.${name}`,
        all.flatMap((one) => one.explainUs),
      ),
      medianOf(
        `rowUs.${name}`,
        all.flatMap((one) => one.rowUs),
      ),
    );
    const bySet = smoreDecisions(devices, fit, events);
    measured.push(medianOf(`smoreDecisionUs.${name}`, bySet), {
      name: `smoreDecisionP99Us.${name}`,
      value: percentile(bySet, 99),
    });
    if (fit === 'first') {
      measured.push({ name: `firstFitLost.${name}`, value: Math.max(...all.map((one) => one.lost)) });
    }
  }
  const valueOf = (name: string): number => measured.find((one) => one.name === name)?.value ?? NaN;
  const value = valueOf('decisionUs.10000fast') / valueOf('decisionUs.1024fast');
  return [...measured, { name: 'decisionRatio.10000fast', value }];
}

/**
 * Time of decisions of the least-loaded policy on clusters of 8 to 10,000 devices, of best fit on Dilu's mix, and of PROTEAN's
 * stages.
 */
export const decide: Bench = {
  summary: 'time of decisions on generated clusters',
  parts: [],
  run: (context) => Promise.resolve(measure(context)),
};

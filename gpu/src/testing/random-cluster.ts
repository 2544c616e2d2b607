import { shareClasses } from '@gpuwhisk/common/gpu';
import type { Device, DeviceStatus, NodeStatus, Placement, Resident, Share, Slice } from '@gpuwhisk/common/gpu';
import { randomFraction } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import type { PlacementChoice, PlacementRequest } from '../ledger/account.js';

/** What decides about placements and is told how they fare. */
export interface PlacerOnTrial {
  /** A node's row has come. */
  heard(node: NodeStatus): void;
  /** A node's row has expired. */
  silent(invoker: string): void;
  /** Decides, and counts the placement as given out if there is one. */
  place(activationId: string, request: PlacementRequest, kept: ReadonlySet<string>): PlacementChoice;
  placesToKeep(request: PlacementRequest, kept: ReadonlySet<string>): string[];
  /** A run is over. */
  ended(activationId: string): void;
  /** An agent gave an activation back. */
  returned(activationId: string): void;
}

const pick = <One>(random: Random, from: readonly One[]): One => from[random.uint32() % from.length]!;

function deviceOf(random: Random, uuid: string): Device {
  const mode = pick(random, ['mps', 'mps', 'mps', 'exclusive', 'timeslice', 'mig'] as const);
  const slices = Array.from({ length: mode === 'mig' ? 1 + (random.uint32() % 4) : 0 }, (_, at): Slice => ({
    uuid: `${uuid}/${at}`,
    profile: '1g.10gb',
    startSlot: at,
    slots: 1,
    smCount: 14,
    memoryMiB: 9856,
  }));
  return {
    uuid,
    index: 0,
    name: 'NVIDIA A100',
    type: pick(random, ['a100', 'a100', 'a100', 'h100']),
    smCount: 108,
    memoryMiB: pick(random, [16_000, 40_000, 80_000, NaN]),
    mode,
    slices,
    simulated: true,
  };
}

/** A node whose agent does what is sent to it. */
class SimulatedNode {
  residents: Resident[] = [];
  inbox: { id: string; placement: Placement; request: PlacementRequest }[] = [];
  private readonly status: DeviceStatus[];
  private version = 0;
  private containers = 0;

  constructor(
    private readonly invoker: string,
    private readonly devices: Device[],
  ) {
    this.status = devices.map(({ uuid }) => ({
      uuid,
      at: 0,
      usedMemoryMiB: 0,
      processes: [],
      health: { state: 'healthy', reasons: [] },
    }));
  }

  get row(): NodeStatus {
    const { invoker, devices } = this;
    const held = (uuid: string): number =>
      this.residents.reduce((sum, one) => sum + (one.device === uuid ? one.memoryMiB : 0), 0);
    return {
      invoker,
      version: this.version,
      at: 0,
      devices,
      status: this.status.map((one) => ({ ...one, usedMemoryMiB: held(one.uuid) + one.usedMemoryMiB })),
      residents: this.residents.map((one) => ({ ...one, activations: [...one.activations] })),
    };
  }

  /** Health and processes of others change. */
  disturb(random: Random): void {
    const status = pick(random, this.status);
    const device = this.devices.find(({ uuid }) => uuid === status.uuid)!;
    const isCordoned = random.uint32() % 8 === 0;
    status.health = isCordoned ? { state: 'cordoned', reasons: ['an operator'] } : { state: 'healthy', reasons: [] };
    const slice = device.slices.length > 0 ? { slice: pick(random, device.slices).uuid } : {};
    status.processes = pick(random, [[], [{ pid: 7, memoryMiB: 3000, ...slice }]]);
    status.usedMemoryMiB = pick(random, [0, 0, 500, 5000]);
  }

  /** Takes what was sent, or gives it back; `returned` is told of those. */
  work(random: Random, returned: (id: string) => void): void {
    for (const { id, placement, request } of this.inbox) {
      if (random.uint32() % 10 === 0) returned(id);
      else this.take(id, placement, request);
    }
    this.inbox = [];
    this.version += 1;
  }

  /** A run ends; its instance idles, or goes. */
  end(random: Random, id: string): boolean {
    const there = this.residents.filter(({ activations }) => activations.includes(id));
    for (const one of there) one.activations = one.activations.filter((other) => other !== id);
    if (random.uint32() % 4 === 0)
      this.residents = this.residents.filter((one) => one.activations.length > 0 || !there.includes(one));
    return there.length > 0;
  }

  private take(id: string, { devices, slice, share, reclaim = [] }: Placement, request: PlacementRequest): void {
    this.residents = this.residents.filter(({ container }) => !reclaim.includes(container));
    const { action, namespace, subject, isolation, batch } = request;
    const isOwn = (one: Resident): boolean =>
      one.action === action && one.namespace === namespace && one.subject === subject;
    const place = slice ?? devices[0];
    const free = this.residents.find(
      (one) =>
        isOwn(one) &&
        one.share.shareClass === share.shareClass &&
        (one.slice ?? one.device) === place &&
        (one.gang?.length ?? 1) === devices.length &&
        (one.activations.length === 0 || (batch > 1 && one.activations.length < 2 * batch)),
    );
    if (free !== undefined) {
      for (const one of this.residents) if (one.container === free.container) one.activations.push(id);
      return;
    }
    const container = `${this.invoker}-c${(this.containers += 1)}`;
    for (const device of devices) {
      this.residents.push({
        container,
        device,
        share,
        memoryMiB: share.memoryMiB,
        action,
        namespace,
        isolation,
        activations: [id],
        ...(slice !== undefined && { slice }),
        ...(subject !== undefined && { subject }),
        ...(devices.length > 1 && { gang: devices }),
        ...(this.containers % 3 === 0 && { loadMs: 100 * this.containers }),
      });
    }
  }
}

function requestIn(random: Random): PlacementRequest {
  const number = random.uint32() % 12;
  // What a function asks for is the same each time.
  const namespace = `n${number % 3}`;
  const shareClass = shareClasses[number % shareClasses.length]!;
  const share: Share = {
    shareClass,
    smRequest: shareClass / (number % 2 === 0 ? 100 : 200),
    smLimit: shareClass / 100,
    memoryMiB: [800, 2500, 9000, 30_000][number % 4]!,
  };
  const batch = number % 5 === 0 ? 3 : 1;
  return {
    action: `/${namespace}/f${number}`,
    namespace,
    share,
    gpus: number === 4 || number === 7 ? 2 : 1,
    batch,
    isolation: (['shared', 'namespace', 'namespace', 'exclusive'] as const)[(number >> 1) % 4]!,
    ...(batch > 1 && { subject: pick(random, ['s', 't']) }),
    isBounded: number % 6 === 1,
    memoryMiB: share.memoryMiB,
  };
}

/** Drives a placer through `steps` events of a random cluster; what it decides is told to `onChoice`. */
export function walkCluster(
  random: Random,
  placer: PlacerOnTrial,
  steps: number,
  onChoice: (choice: PlacementChoice, kept: readonly string[]) => void,
): void {
  const nodes = Array.from({ length: 1 + (random.uint32() % 4) }, (_, at) => {
    const devices = Array.from({ length: 1 + (random.uint32() % 4) }, (_, number) =>
      deviceOf(random, `G${at}.${number}`),
    );
    return { invoker: `invoker${at}`, node: new SimulatedNode(`invoker${at}`, devices) };
  });
  const running = new Map<string, SimulatedNode>();
  for (const { node } of nodes) placer.heard(node.row);
  let kept = new Set<string>();
  for (let step = 0; step < steps; step += 1) {
    const { node, invoker } = pick(random, nodes);
    const kind = random.uint32() % 16;
    if (kind < 7) {
      const id = `a${step}`;
      const request = requestIn(random);
      const choice = placer.place(id, request, kept);
      const { placement } = choice;
      const wanted = placement === undefined ? placer.placesToKeep(request, kept) : [];
      onChoice(choice, wanted);
      if (placement !== undefined) {
        const target = nodes.find((one) => one.invoker === placement.invoker)!.node;
        target.inbox.push({ id, placement, request });
        running.set(id, target);
      }
      kept = random.uint32() % 8 === 0 ? new Set(wanted) : kept;
      if (random.uint32() % 4 === 0) kept = new Set();
    } else if (kind < 11 && running.size > 0) {
      const id = pick(random, [...running.keys()]);
      const host = running.get(id)!;
      if (!host.end(random, id)) continue;
      running.delete(id);
      placer.ended(id);
    } else if (kind < 15) {
      node.work(random, (id) => {
        running.delete(id);
        placer.returned(id);
      });
      if (randomFraction(random) < 0.2) node.disturb(random);
      placer.heard(node.row);
    } else if (random.uint32() % 4 === 0) placer.silent(invoker);
  }
}

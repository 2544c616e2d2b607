// Cost-aware procurement (PROTEAN, section 4.5): spot machines while there are some, machines on demand in between.
import type { Market } from '../../view/decision.js';
import type { MachineState, NodeState, ProcurementState } from '../../view/view.js';
import type { NodeAction, Procure } from '../../stages/procure/procure.js';

/** Settings of `proteanProcurement`. */
export const proteanProcurementDefaults = {
  /** Whether spot machines are rented; with 0 machines are rented on demand only. */
  useSpot: 1,
  /** Whether machines are rented on demand; with 0 machines are spot machines only. */
  useOnDemand: 1,
  /** How long a market without a machine is not asked again, s. */
  retryS: 30,
  /** Most machines that are asked for at once. */
  mostAtOnce: 8,
  /** Time of service with which spot machines are trusted before any has served, s. */
  trustS: 120,
  /** Time after which what spot machines have shown counts half, s. */
  forgetS: 21_600,
};

/**
 * Keeps the wanted number of rented nodes. A node with a notice counts as gone, so that its replacement is asked for at once:
 * a spot machine, and one on demand if there is none or it costs no less. Ours beyond the paper: the price of a spot machine
 * is that of its time of service, as boots and notices are paid, too, and short lives make them dear. While machines on demand are rented, spot machines
 * are tried for one after the other; a machine on demand is given back once a spot machine has taken its place. Throws
 * RangeError if both markets are excluded.
 */
export function proteanProcurement({
  useSpot,
  useOnDemand,
  retryS,
  mostAtOnce,
  trustS,
  forgetS,
}: typeof proteanProcurementDefaults): Procure {
  if (useSpot === 0 && useOnDemand === 0) throw new RangeError("one of 'useSpot' and 'useOnDemand' must be 1");
  const service = new SpotService(trustS * 1000, forgetS * 1000);
  return ({ at, nodes = [], procurement }) => {
    if (procurement === undefined) return [];
    const { wanted, machines } = procurement;
    service.observe(machines, at);
    const own = ownNodes(nodes, machines);
    const staying = machines.filter((machine) => stays(machine, nodes));
    const up = staying.filter(({ state }) => state === 'up');
    const isSpotCheaper = costsLess(procurement, service.paidPerServed);
    const mayAsk = (market: Market): boolean => !refusedLately(procurement, market, at, retryS * 1000);
    const prefersSpot = useSpot > 0 && (isSpotCheaper || useOnDemand === 0);
    const missing = wanted - own - staying.length;
    if (missing > 0) {
      const markets: Market[] = [
        ...(prefersSpot ? ['spot' as const] : []),
        ...(useOnDemand > 0 ? ['on-demand' as const] : []),
      ];
      const market = markets.find(mayAsk);
      if (market === undefined) return [];
      const reason = `${wanted} rented nodes are wanted, and ${wanted - missing} stay`;
      return Array.from({ length: Math.min(missing, mostAtOnce) }, () => ({ kind: 'acquire', market, reason }));
    }
    const surplus = up.length + own - wanted;
    if (surplus > 0) return givenBack(up, Math.min(surplus, mostAtOnce), prefersSpot, wanted);
    const isReplaceable = missing === 0 && staying.every(({ state }) => state === 'up');
    const replaces = isReplaceable && prefersSpot && up.some(({ market }) => market === 'on-demand');
    if (!replaces || !mayAsk('spot')) return [];
    return [{ kind: 'acquire', market: 'spot', reason: 'a spot machine may replace one that is rented on demand' }];
  };
}

/** Nodes with a market that others have rented, without those that leave. */
function ownNodes(nodes: readonly NodeState[], machines: readonly MachineState[]): number {
  const rented = new Set(machines.map(({ node }) => node));
  return nodes.filter(({ id, market, leavesAt }) => market !== undefined && leavesAt === undefined && !rented.has(id))
    .length;
}

/** Whether a machine serves, or will serve, for as long as it is wanted. */
function stays({ state, node, leavesAt }: MachineState, nodes: readonly NodeState[]): boolean {
  if (state === 'lost' || state === 'leaving' || leavesAt !== undefined) return false;
  return nodes.find(({ id }) => id === node)?.leavesAt === undefined;
}

/** Whether spot machines cost less for their service than others by the last prices; without both prices they do. */
function costsLess({ prices }: ProcurementState, paidPerServed: number): boolean {
  const { spot, 'on-demand': onDemand } = prices;
  return spot === undefined || onDemand === undefined || spot * paidPerServed < onDemand;
}

/** Longest time between two looks that counts, ms: clocks jump, and a controller may not have decided for a while. */
const longestLookMs = 300_000;

/** How long spot machines were paid for, and how long they served meanwhile; older time counts less. */
class SpotService {
  private paidMs = 0;
  private servedMs = 0;
  private seenAt: number | undefined;
  private seen: readonly MachineState[] = [];

  constructor(
    private readonly trustMs: number,
    private readonly halfLifeMs: number,
  ) {}

  /** Time that is paid for each unit of service, at least 1. */
  get paidPerServed(): number {
    return (this.paidMs + this.trustMs) / (this.servedMs + this.trustMs);
  }

  /** Adds the time since the last look, in which the machines were as they were then. */
  observe(machines: readonly MachineState[], at: number): void {
    const passedMs = Math.min(longestLookMs, Math.max(0, at - (this.seenAt ?? at)));
    const kept = 0.5 ** (passedMs / this.halfLifeMs);
    const paid = this.seen.filter(({ market, state }) => market === 'spot' && state !== 'asked' && state !== 'lost');
    const served = paid.filter(({ state, leavesAt }) => state === 'up' && leavesAt === undefined);
    this.paidMs = this.paidMs * kept + paid.length * passedMs;
    this.servedMs = this.servedMs * kept + served.length * passedMs;
    this.seen = machines;
    this.seenAt = at;
  }
}

/** Whether a market had no machine within `forMs`. A refusal in the future does not count: the clock was set back. */
function refusedLately({ refusedAt }: ProcurementState, market: Market, at: number, forMs: number): boolean {
  const refused = refusedAt[market];
  return refused !== undefined && refused <= at && at - refused < forMs;
}

/** The machines that are given back first: those on demand where spot is preferred, then the dearest. */
function givenBack(
  up: readonly MachineState[],
  count: number,
  prefersSpot: boolean,
  wanted: number,
): readonly NodeAction[] {
  const rank = ({ market }: MachineState): number => (prefersSpot && market === 'on-demand' ? 0 : 1);
  const byRank = [...up].sort(
    (one, other) =>
      rank(one) - rank(other) || (other.pricePerHour ?? 0) - (one.pricePerHour ?? 0) || (one.id < other.id ? 1 : -1),
  );
  return byRank.slice(0, count).flatMap(({ node, market }) =>
    node === undefined
      ? []
      : [
          {
            kind: 'give-back' as const,
            node,
            reason: `${wanted} rented nodes are wanted, and a ${market} one is to spare`,
          },
        ],
  );
}

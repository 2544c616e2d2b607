/** Something that a policy wants done besides starts: it lasts, and is seen in later views once it has come about. */
export type Action = { reason: string } & (
  | {
      /** Start an instance of a function on GPUs, and load its code, before a request comes. */
      kind: 'launch';
      /** As in Task: the function, and the namespace that it runs for. */
      function: string;
      namespace: string;
      /** By id; several of one node and alike where the function needs several. */
      gpus: readonly string[];
      /** Class that its process is started with, fraction of the SMs. */
      share: number;
    }
  | {
      /** End an instance once nothing runs in it; a run that lasts `graceMs` from now on is stopped (absent: it is not). */
      kind: 'retire';
      instance: string;
      graceMs?: number;
    }
  | {
      /** Move an instance's request and limit, fractions of the SMs: request ≤ limit ≤ its class. */
      kind: 'reshare';
      instance: string;
      request: number;
      limit: number;
    }
  | {
      /** Have a device cut into MIG instances of these profiles once those that go are empty; none: it is whole. */
      kind: 'cut';
      device: string;
      profiles: readonly string[];
    }
  | {
      /** Take one more node of this market. */
      kind: 'acquire';
      market: Market;
    }
  | {
      /** Give a node back once nothing runs there. */
      kind: 'give-back';
      node: string;
    }
);

/** How a node is paid for: at a lower price until it is taken away again, or for as long as it is wanted. */
export type Market = 'spot' | 'on-demand';

/** Has actions carried out. What becomes of them is seen in later views. */
export interface Actuator {
  /**
   * Begins with an action; gives why it is refused, or undefined. An action on something that is not there is refused and
   * changes nothing. Rejects where the state of the cluster cannot be written, or another controller decides.
   */
  carryOut(action: Action): Promise<string | undefined>;
}

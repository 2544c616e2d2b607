import { list, object, ref, text, whole } from './json-schema.js';

const price = { type: 'number', description: "Price per hour, in the operator's currency" } as const;
const cost = { type: 'number', description: "Cost, in the operator's currency" } as const;
const market = { type: 'string', description: 'How the node is paid for', enum: ['spot', 'on-demand'] as string[] };

/** Nodes, rented machines and costs. */
export const nodeSchemas = {
  GpuNodes: object(
    {
      wanted: whole('Number of rented nodes that there are to be; absent if no provider is configured'),
      nodes: list(ref('GpuNode'), 'Nodes with GPUs, then rented machines that do not report'),
    },
    ['nodes'],
  ),
  GpuNode: object(
    {
      invoker: text('Topic of the invoker; absent before its first report'),
      state: text(
        'ready or leaving; of a machine that does not report: asked, booting, silent, leaving, ending or ended',
      ),
      labels: { type: 'object', description: "The operator's labels", additionalProperties: { type: 'string' } },
      market,
      pricePerHour: price,
      why: text('revoked or given-back, of a node that leaves'),
      leavesAt: whole('When the node will be taken away, epoch milliseconds'),
      machine: text("The provider's name of a rented machine"),
      devices: list({ type: 'string' }, 'UUIDs of its devices'),
      running: whole('Activations that run on its devices'),
    },
    ['state', 'labels', 'devices', 'running'],
  ),
  GpuWantedNodes: object({ wanted: whole('Number of rented nodes that there are to be, 0 to 10000') }, ['wanted']),
  GpuNodeNotice: object({ inS: whole('Time until the node is taken away, s') }, ['inS']),
  GpuNodeNoticed: object(
    {
      invoker: text('Topic of the invoker'),
      why: text('revoked'),
      at: whole('When the notice was made, epoch milliseconds'),
      leavesAt: whole('When the node will be taken away, epoch milliseconds'),
    },
    ['invoker', 'why', 'at', 'leavesAt'],
  ),
  GpuCost: object(
    {
      from: text('First day (UTC)'),
      to: text('Last day (UTC)'),
      functions: list(
        object(
          {
            namespace: text('Namespace of the invocations'),
            action: text('Fully qualified name of the action'),
            gpuSeconds: { type: 'number', description: 'Seconds of a whole GPU' },
            cost,
          },
          ['namespace', 'action', 'gpuSeconds', 'cost'],
        ),
        'Functions of the caller, the dearest first; of operators all',
      ),
      markets: list(
        object({
          market: text('spot, on-demand or own'),
          hours: { type: 'number', description: 'Hours of nodes' },
          cost,
          idle: { ...cost, description: 'Part of the cost for GPUs that no function used' },
          boot: { ...cost, description: 'Part of the cost before the invoker of a machine reported' },
        }),
        'Costs by market, for operators',
      ),
      idle: { ...cost, description: 'Idle cost of all nodes, for operators' },
      boot: { ...cost, description: 'Cost of machines that booted, for operators' },
      total: { ...cost, description: 'Cost of all nodes, or of the functions of the caller' },
    },
    ['from', 'to', 'functions', 'total'],
  ),
};

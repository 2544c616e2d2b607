import type { Device, DeviceStatus, NodeStatus, Resident, Workload } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';

/** The caller of a view. An operator sees all; others see what is their namespace's, and how much others use without their names. */
export interface Viewer {
  namespace: string;
  isOperator: boolean;
}

/** The workloads of the cluster: those that are registered, and processes that no container and no registration explains. */
export function allWorkloads(nodes: readonly NodeStatus[], registered: readonly Workload[]): Workload[] {
  const known = new Set(registered.map(({ invoker, pid }) => `${invoker} ${pid}`));
  const discovered = nodes.flatMap((node) =>
    node.status.flatMap(({ uuid: device, processes }) =>
      processes
        .filter(({ container, pid }) => container === undefined && !known.has(`${node.invoker} ${pid}`))
        .map(({ pid, memoryMiB, workload }): Workload => {
          const name = workload ?? `process ${pid}`;
          const id = `${node.invoker}-${pid}`;
          return {
            id,
            name,
            origin: 'discovered',
            invoker: node.invoker,
            device,
            pid,
            since: node.at,
            memoryMiB,
            maxDegradation: 0,
          };
        }),
    ),
  );
  return [...registered, ...discovered];
}

/** Whether a viewer may see a workload. */
export function maySee(viewer: Viewer, workload: Workload): boolean {
  return viewer.isOperator || workload.namespace === viewer.namespace;
}

/** The devices of the cluster, with what is on them as far as it is the viewer's to see. */
export function devicesView(
  nodes: readonly NodeStatus[],
  workloads: readonly Workload[],
  viewer: Viewer,
): JsonObject[] {
  return nodes.flatMap((node) => node.devices.map((device) => deviceView(node, device, workloads, viewer)));
}

function deviceView(node: NodeStatus, device: Device, workloads: readonly Workload[], viewer: Viewer): JsonObject {
  const status = node.status.find(({ uuid }) => uuid === device.uuid);
  const { state, reasons } = status?.health ?? { state: 'offline', reasons: ['nothing is known of it'] };
  const { slices, ...fixed } = device;
  return {
    invoker: node.invoker,
    ...fixed,
    slices: slices.map((slice) => ({ ...slice })),
    ...(status !== undefined && figuresOf(status)),
    // They may name functions and processes of others.
    health: viewer.isOperator ? { state, reasons } : { state },
    functions: node.residents.filter((one) => one.device === device.uuid).map((one) => functionView(one, viewer)),
    workloads: workloads.filter((one) => one.device === device.uuid && maySee(viewer, one)).map((one) => ({ ...one })),
  };
}

function figuresOf({ usedMemoryMiB, ...status }: DeviceStatus): JsonObject {
  const { utilisation, smActivity, dramActivity, temperatureC, powerW, contextMiB } = status;
  const known = Object.entries({ utilisation, smActivity, dramActivity, temperatureC, powerW, contextMiB });
  return { usedMemoryMiB, ...Object.fromEntries(known.filter(([, value]) => value !== undefined)) } as JsonObject;
}

function functionView(resident: Resident, viewer: Viewer): JsonObject {
  const { action, namespace, container, slice, share, memoryMiB, heldMiB, activations, launches } = resident;
  // A pre-warmed container has no namespace yet.
  const named = viewer.isOperator || namespace === undefined || namespace === viewer.namespace;
  return {
    ...(named && { container }),
    ...(named && action !== undefined && { action }),
    ...(named && namespace !== undefined && { namespace }),
    ...(slice !== undefined && { slice }),
    share: share.shareClass / 100,
    smRequest: share.smRequest,
    smLimit: share.smLimit,
    memoryMiB,
    ...(heldMiB !== undefined && { heldMiB }),
    ...(named && launches !== undefined && { launches: { ...launches } }),
    running: activations.length,
  };
}

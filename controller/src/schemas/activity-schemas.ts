import type { JsonObject } from '@gpuwhisk/common/json';
import { list, object, text, whole, yesNo } from './json-schema.js';

const epochMs = (what: string): JsonObject => whole(`${what}, epoch milliseconds`);
const fraction = (description: string): JsonObject => ({ type: 'number', description: `${description}, 0 to 1` });

/** Schemas of callers, of what the cluster runs now, and of its processes. */
export const activitySchemas = {
  Viewer: object(
    {
      namespace: text("Namespace of the key; absent: it is the operator's"),
      isOperator: yesNo('Whether the key sees all namespaces'),
    },
    ['isOperator'],
  ),
  ActivitySecond: object(
    {
      id: text('The second since the epoch'),
      at: epochMs('Begin of the second'),
      activations: whole('Activations that ended, of the namespace of the caller; of operators all'),
      failed: whole('Those that did not succeed'),
      cold: whole('Those that ran in a container made for them'),
      prewarmed: whole('Those that ran in a container that stood by'),
      injected: whole('Those that were injected into a process that stood by'),
      warm: whole('Those that found their code loaded'),
      withSlo: whole('Those with an SLO'),
      metSlo: whole('Those that succeeded within it'),
    },
    ['id', 'at', 'activations', 'failed', 'cold', 'prewarmed', 'injected', 'warm', 'withSlo', 'metSlo'],
  ),
  GpuDeviceHistory: object(
    {
      samples: list(
        object(
          {
            at: epochMs('Time'),
            usedMemoryMiB: whole('Device memory in use, MiB'),
            utilisation: fraction('Part of the time in which a kernel ran'),
          },
          ['at', 'usedMemoryMiB'],
        ),
        'Samples of the last ten minutes, each 5 s, oldest first',
      ),
      instances: list(
        object(
          {
            container: text('Container; absent where it is of another namespace'),
            action: text('Fully qualified name of the action; absent where it is of another namespace'),
            namespace: text('Namespace of the invocations; absent where it is another one'),
            slice: text('UUID of the MIG instance'),
            smLimit: fraction('Limit as a fraction of the SMs'),
            memoryMiB: whole('Device memory, MiB'),
            from: epochMs('Start'),
            until: epochMs('End; absent: it is there'),
          },
          ['smLimit', 'memoryMiB', 'from'],
        ),
        'Instances of functions of the last ten minutes, oldest first',
      ),
      runs: list(
        object(
          {
            activationId: text('Id of the activation'),
            device: text('UUID of the device'),
            action: text('Fully qualified name of the action'),
            namespace: text('Namespace of the invocation'),
            at: epochMs('End of the run'),
            predictedMs: { type: 'number', description: 'Predicted time of the run without loading, ms' },
            actualMs: { type: 'number', description: 'Time of the run without loading, ms' },
          },
          ['activationId', 'device', 'action', 'namespace', 'at', 'predictedMs', 'actualMs'],
        ),
        'The last 60 runs whose time was predicted, of functions that the caller may see, oldest first',
      ),
    },
    ['samples', 'instances', 'runs'],
  ),
  ClusterMember: object(
    {
      id: text('Name: controller0, invoker0'),
      sort: { type: 'string', description: 'Sort of process', enum: ['controller', 'invoker'] },
      state: text('up; of an invoker also unhealthy, unresponsive or down'),
      decides: yesNo('Of a controller: whether it decides about GPUs'),
      answers: yesNo('Of a controller: whether it gave this answer'),
    },
    ['id', 'sort', 'state'],
  ),
} satisfies Record<string, JsonObject>;

// Which processes on the node's GPUs belong to which registered workload.
import { workloadTable } from '@gpuwhisk/common/gpu';
import type { DeviceStatus, GpuProcess, Workload } from '@gpuwhisk/common/gpu';
import { workloadTokenHash } from '@gpuwhisk/common/workload-guard';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { HostProcesses, ProcessClaims } from './host/host-processes.js';

/** Dependencies of a WorkloadAttestation. */
interface AttestationParts {
  invoker: string;
  state: Pick<ClusterState, 'rows'>;
  processes: Pick<HostProcesses, 'claimsOf'>;
  logger: Logger;
  /** By numeric user id of the machine, the namespace whose workloads the processes of this user may be. */
  workloadUsers?: Readonly<Record<string, string>>;
}

/** Looks after which the claims of a known process are read again: a process may execute another program. */
const readAgainEvery = 5;

/**
 * Attests processes that are no containers' to workloads: by the token of the registration in the process's environment, or
 * by a registered process id whose user the operator has mapped to the namespace.
 */
export class WorkloadAttestation {
  private looks = 0;
  private workloads: readonly Workload[] = [];
  private claims = new Map<number, ProcessClaims>();
  private attested = new Set<string>();

  constructor(private readonly parts: AttestationParts) {}

  /** The statuses with the workload of each attested process. Never rejects. */
  async attest(statuses: readonly DeviceStatus[]): Promise<DeviceStatus[]> {
    const pids = statuses.flatMap(({ processes }) => processes.filter(isForeign).map(({ pid }) => pid));
    if (pids.length > 0) await this.readWorkloads();
    await this.readClaims(new Set(pids));
    const attested = new Set<string>();
    const marked = statuses.map((status) => {
      if (!status.processes.some(isForeign)) return status;
      const processes = status.processes.map((process) => {
        const workload = isForeign(process) ? this.workloadOf(process.pid, status.uuid) : undefined;
        if (workload !== undefined) attested.add(workload);
        return workload === undefined ? process : { ...process, workload };
      });
      return { ...status, processes };
    });
    this.attested = attested;
    return marked;
  }

  /** Whether a process of the workload was on its device at the last look, or its registered process is attested. */
  async isAttested(workload: Workload): Promise<boolean> {
    if (this.attested.has(workload.id)) return true;
    if (workload.pid === undefined) return false;
    const claims = await this.parts.processes.claimsOf(workload.pid);
    return claims !== undefined && this.isOf(workload, workload.pid, claims);
  }

  private workloadOf(pid: number, device: string): string | undefined {
    const claims = this.claims.get(pid);
    if (claims === undefined) return undefined;
    return this.workloads.find((one) => one.device === device && this.isOf(one, pid, claims))?.id;
  }

  private isOf({ guard, namespace, pid: registered }: Workload, pid: number, claims: ProcessClaims): boolean {
    const { user, token } = claims;
    if (token !== undefined && guard?.tokenHash === workloadTokenHash(token)) return true;
    return registered === pid && namespace !== undefined && this.parts.workloadUsers?.[String(user)] === namespace;
  }

  private async readWorkloads(): Promise<void> {
    const { state, invoker, logger } = this.parts;
    try {
      const rows = [...(await state.rows(workloadTable)).values()] as unknown as Workload[];
      this.workloads = rows.filter((one) => one.invoker === invoker && one.ended !== true);
    } catch (error) {
      logger.debug({ error: String(error) }, 'the table of workloads cannot be read'); // Those known before still count.
    }
  }

  private async readClaims(pids: ReadonlySet<number>): Promise<void> {
    const known = this.looks++ % readAgainEvery === 0 ? new Map<number, ProcessClaims>() : this.claims;
    const claims = new Map<number, ProcessClaims>();
    for (const pid of pids) {
      const own = known.get(pid) ?? (await this.parts.processes.claimsOf(pid));
      if (own !== undefined) claims.set(pid, own);
    }
    this.claims = claims;
  }
}

const isForeign = ({ container }: GpuProcess): boolean => container === undefined;

import { useState } from 'preact/hooks';
import { useLive } from '../hooks.js';
import { amount, clockTime, percent } from '../format.js';
import type { ClusterMember, GpuDevice, GpuNodes } from '../model.js';
import { ConfirmedButton } from '../parts/confirmed.js';
import { OperatorsOnly } from '../parts/operators-only.js';
import { Problem } from '../parts/problem.js';
import { Table } from '../parts/table.js';
import { VirtualList } from '../parts/virtual-list.js';
import { hrefOf } from '../route.js';
import { ask, session } from '../session.js';

const rowPx = 44;
/** Notices that can be chosen, s. */
const noticesS = [0, 120, 600, 3600];

/** Controllers, invokers, nodes and GPUs, and what operators do with them. */
export function ClusterPage() {
  return (
    <>
      <h1>Cluster</h1>
      {session.value?.isOperator === true ? (
        <>
          <Members />
          <Nodes />
        </>
      ) : (
        <OperatorsOnly what="Controllers, invokers and nodes are shown, and GPUs are cordoned and drained," />
      )}
      <Devices />
    </>
  );
}

function Members() {
  const members = useLive<ClusterMember[]>('admin/members');
  return (
    <>
      <h2>Controllers and invokers</h2>
      <Problem of={members} what="Controllers and invokers cannot be shown" />
      <Table
        label="Controllers and invokers"
        titles={['Name', 'State', 'Note']}
        rows={(members.value ?? []).map(({ id, state, decides, answers }) => ({
          key: id,
          cells: [
            id,
            <span class={`state ${state === 'up' ? 'healthy' : 'offline'}`}>{state}</span>,
            [decides === true && 'decides about GPUs', answers === true && 'answers this page']
              .filter(Boolean)
              .join(', '),
          ],
        }))}
      />
    </>
  );
}

function Nodes() {
  const nodes = useLive<GpuNodes>('gpu/nodes');
  const { nodes: all = [], wanted } = nodes.value ?? {};
  return (
    <>
      <h2>Nodes with GPUs</h2>
      <Problem of={nodes} what="Nodes cannot be shown" />
      {wanted !== undefined && <WantedNodes wanted={wanted} />}
      {nodes.value !== undefined && all.length === 0 && <p>No node has a GPU.</p>}
      {all.length > 0 && (
        <Table
          label="Nodes with GPUs"
          titles={['Node', 'State', 'GPUs', 'Running', 'Market', 'Price per hour', 'Labels', 'Notice']}
          rows={all.map((node, at) => ({
            key: node.invoker ?? node.machine ?? String(at),
            cells: [
              node.invoker ?? node.machine ?? '',
              <span class={`state ${node.state === 'ready' ? 'healthy' : node.state}`}>{stateOf(node)}</span>,
              node.devices.length,
              node.running,
              node.market ?? 'own',
              node.pricePerHour === undefined ? '' : amount(node.pricePerHour),
              Object.entries(node.labels)
                .map(([name, value]) => `${name}=${value}`)
                .join(', '),
              node.invoker === undefined ? (
                ''
              ) : (
                <NodeNotice invoker={node.invoker} isLeaving={node.state === 'leaving'} />
              ),
            ],
          }))}
        />
      )}
    </>
  );
}

function stateOf({ state, why, leavesAt }: GpuNodes['nodes'][number]): string {
  const until = leavesAt === undefined ? '' : ` at ${clockTime(leavesAt)}`;
  return `${state}${until}${why === undefined ? '' : `, ${why}`}`;
}

/** Announces that a node goes, which drains it, or takes that back. */
function NodeNotice({ invoker, isLeaving }: { invoker: string; isLeaving: boolean }) {
  const [inS, setInS] = useState(600);
  const path = `gpu/nodes/${encodeURIComponent(invoker)}/notice`;
  if (isLeaving) {
    return (
      <ConfirmedButton
        name="Withdraw"
        label={`Withdraw the notice of ${invoker}`}
        question={`${invoker} takes work again.`}
        work={() => ask(path, { method: 'DELETE' })}
      />
    );
  }
  return (
    <span class="buttons">
      <select
        aria-label={`When ${invoker} goes`}
        value={inS}
        onChange={({ currentTarget }) => setInS(Number(currentTarget.value))}
      >
        {noticesS.map((seconds) => (
          <option key={seconds} value={seconds}>
            {seconds === 0 ? 'now' : `in ${seconds / 60} min`}
          </option>
        ))}
      </select>
      <ConfirmedButton
        name="Announce end"
        label={`Announce the end of ${invoker}`}
        question={`${invoker} takes no new work, and its GPUs only what ends in time.`}
        work={() => ask(path, { method: 'PUT', body: JSON.stringify({ inS }) })}
      />
    </span>
  );
}

/** How many nodes are rented. */
function WantedNodes({ wanted }: { wanted: number }) {
  const [count, setCount] = useState(wanted);
  return (
    <p class="buttons">
      <label>
        Rented nodes{' '}
        <input
          type="number"
          min={0}
          max={10_000}
          value={count}
          onInput={({ currentTarget }) => setCount(Number(currentTarget.value))}
        />
      </label>
      <ConfirmedButton
        name="Rent"
        label={`Rent ${count} nodes`}
        question={`There are to be ${count} rented nodes instead of ${wanted}.`}
        work={() => ask('gpu/nodes', { method: 'PUT', body: JSON.stringify({ wanted: count }) })}
      />
    </p>
  );
}

function Devices() {
  const devices = useLive<GpuDevice[]>('gpu/devices');
  const all = devices.value ?? [];
  return (
    <>
      <h2>GPUs</h2>
      <Problem of={devices} what="The GPUs cannot be shown" />
      {devices.value?.length === 0 && <p>No invoker has a GPU.</p>}
      {all.length > 0 && (
        <div class="cluster-gpus">
          <VirtualList
            rows={all}
            rowPx={rowPx}
            label="GPUs of the cluster"
            keyOf={({ uuid }) => uuid}
            titles={['GPU', 'State', 'Change, reasons', 'Running', 'Busy']}
            draw={(device) => <DeviceRow device={device} />}
          />
        </div>
      )}
    </>
  );
}

const wishes = {
  cordon: { name: 'Cordon', what: 'It takes no new work; what runs goes on, and idle containers stay.' },
  drain: {
    name: 'Drain',
    what: 'It takes no new work, idle containers end, and it is empty once what runs has ended.',
  },
  uncordon: { name: 'Uncordon', what: 'It takes work again.' },
} as const;

function DeviceRow({ device: { uuid, invoker, index, health, functions, utilisation = 0 } }: { device: GpuDevice }) {
  const name = `${invoker} / ${index}`;
  const reasons = (health.reasons ?? []).join('; ');
  const isOut = health.state === 'cordoned' || health.state === 'draining';
  return (
    <>
      <span role="cell">
        <a href={hrefOf('devices', uuid)}>{name}</a>
      </span>
      <span role="cell" class={`state ${health.state}`}>
        {health.state}
      </span>
      <span role="cell" class="buttons" title={reasons}>
        {session.value?.isOperator === true &&
          (isOut ? (['uncordon'] as const) : (['cordon', 'drain'] as const)).map((wish) => (
            <ConfirmedButton
              key={wish}
              name={wishes[wish].name}
              label={`${wishes[wish].name} ${name}`}
              question={wishes[wish].what}
              work={() =>
                ask(`gpu/devices/${encodeURIComponent(uuid)}`, { method: 'PUT', body: JSON.stringify({ wish }) })
              }
            />
          ))}{' '}
        {reasons}
      </span>
      <span role="cell">{functions.reduce((sum, { running }) => sum + running, 0)}</span>
      <span role="cell">{percent(utilisation)}</span>
    </>
  );
}

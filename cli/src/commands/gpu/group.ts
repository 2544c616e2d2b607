import type { Command } from '../../command.js';
import { lastFlag } from '../activation/activations.js';
import { explain, listQueue } from './decisions.js';
import {
  cutDevice,
  launchInstance,
  listDevices,
  listInstances,
  requestState,
  reshareInstance,
  retireInstance,
  top,
} from './devices.js';
import { showDegradations } from './degradations.js';
import { showFeatures } from './features.js';
import { showForecast } from './forecast.js';
import { listFunctions, listQuotas } from './functions.js';
import { jobCommand } from './jobs.js';
import { model } from './model.js';
import { listNodes, noticeNode, rentNodes, showCost } from './nodes.js';
import { policy } from './policy.js';
import { profile } from './profile.js';
import { listWorkloads, workload } from './workloads.js';

/** `wsk gpu`. */
export const gpuCommands: Command[] = [
  { name: 'devices', summary: 'list GPUs', flags: [], run: listDevices },
  {
    name: 'top',
    summary: 'show GPUs and what is on them, again every second on a terminal',
    flags: [{ name: 'once', type: 'bool', help: 'show it once' }],
    run: top,
  },
  { name: 'queue', summary: 'list activations that wait for a GPU', flags: [], run: listQueue },
  {
    name: 'policy',
    argsUsage: '[try NAME | set NAME | reset]',
    summary: 'show the policy in force, replay arrivals under another one beside it, or change it (operators)',
    flags: [
      { name: 'minutes', type: 'int', help: 'replay arrivals of the last `MINUTES` (default: 60)' },
      { name: 'arrivals', type: 'string', help: 'replay the arrivals in `FILE`, a JSON list, instead' },
    ],
    run: policy,
  },
  {
    name: 'explain',
    argsUsage: '[ACTIVATION_ID | --last]',
    summary: 'show where the time of an activation that needs a GPU went, what was decided about it, and why',
    flags: [
      lastFlag,
      { name: 'view', type: 'string', help: 'save all that the policy decides on now in `FILE` (operators)' },
    ],
    run: explain,
  },
  {
    name: 'functions',
    summary: 'list what was learned of functions that need a GPU (*: worked out from runs beside others)',
    flags: [{ name: 'forget', type: 'string', help: 'forget the function `/NAMESPACE/ACTION` instead (operators)' }],
    run: listFunctions,
  },
  {
    name: 'forecast',
    argsUsage: 'ACTION_NAME',
    summary: 'show the requests of a function in the last hour, and what was forecast',
    flags: [],
    run: showForecast,
  },
  {
    name: 'features',
    argsUsage: 'FILE',
    summary: 'show the features of a PyTorch model for predictions of degradation; needs no GPU and no server',
    needsServer: () => false,
    flags: [
      {
        name: 'input',
        type: 'strings',
        help: 'the `SHAPE[:TYPE]` of one sample: 3x224x224, 128:int64; once each input',
      },
      { name: 'batch', type: 'int', help: 'the number of `SAMPLES` of a step or request (default: 1)' },
      { name: 'model', type: 'string', help: 'the `NAME` of the model in the file, or of what makes it' },
      { name: 'training', type: 'bool', help: 'estimate the memory of a training' },
      { name: 'json', type: 'bool', help: 'print JSON, as annotation gpu and workloads take it' },
      { name: 'python', type: 'string', help: 'the Python interpreter, `PROGRAM` (default: python3)' },
      { name: 'timeout', type: 'int', help: 'give up after `SECONDS` (default: 120)' },
    ],
    run: showFeatures,
  },
  {
    name: 'quotas',
    summary: 'list shares that were measured for functions that run together',
    flags: [{ name: 'forget', type: 'string', help: 'forget the set with this `ID` instead (operators)' }],
    run: listQuotas,
  },
  {
    name: 'degradations',
    summary: 'show how well degradations of pairs are predicted, and which pairs drift (operators)',
    flags: [],
    run: showDegradations,
  },
  { name: 'instances', summary: 'list instances of functions on GPUs', flags: [], run: listInstances },
  {
    name: 'launch',
    argsUsage: 'ACTION_NAME',
    summary: 'start an instance of a function and load its code before a request comes',
    flags: [
      { name: 'on', type: 'string', help: 'its GPUs or its MIG instance, by `UUID[,UUID...]` (default: least loaded)' },
      { name: 'percent', type: 'int', help: 'the class of its share, `PERCENT` of the SMs (default: as it asks)' },
    ],
    run: launchInstance,
  },
  {
    name: 'retire',
    argsUsage: 'CONTAINER',
    summary: 'end an instance of a function once nothing runs in it',
    flags: [
      {
        name: 'grace',
        type: 'int',
        help: 'stop its run after `MS`; an idempotent action runs again elsewhere',
      },
    ],
    run: retireInstance,
  },
  {
    name: 'model',
    argsUsage: '(load | delete | status) ACTION_NAME',
    summary: 'load the model of a function ahead of requests, end its instances, or show them',
    flags: [{ name: 'grace', type: 'int', help: 'stop runs after `MS` (delete); an idempotent action runs again' }],
    run: model,
  },
  jobCommand,
  {
    name: 'profile',
    argsUsage: 'ACTION_NAME',
    summary: 'find request and limit of a function by trials on idle GPUs, and show them',
    flags: [
      { name: 'cancel', type: 'bool', help: 'end the trials; those that have ended are kept' },
      { name: 'svg', type: 'string', help: 'save a plot of the times by share in `FILE`' },
    ],
    run: profile,
  },
  {
    name: 'reshare',
    argsUsage: 'CONTAINER',
    summary: 'move the share of an instance below its class, where its GPU has kernel tokens',
    flags: [
      { name: 'limit', type: 'string', help: 'the `FRACTION` of the SMs that it may have' },
      { name: 'request', type: 'string', help: 'the `FRACTION` that it has whenever it asks (default: the limit)' },
    ],
    run: reshareInstance,
  },
  {
    name: 'cut',
    argsUsage: 'UUID [PROFILE,PROFILE...]',
    summary: 'cut a GPU into MIG instances, or make it whole, once nothing runs on the slices that go (operators)',
    flags: [],
    run: cutDevice,
  },
  {
    name: 'cordon',
    argsUsage: 'UUID',
    summary: 'have no new work on a GPU (operators)',
    flags: [],
    run: requestState('cordon'),
  },
  {
    name: 'drain',
    argsUsage: 'UUID',
    summary: 'have no new work on a GPU, and nothing once what runs has ended (operators)',
    flags: [],
    run: requestState('drain'),
  },
  {
    name: 'uncordon',
    argsUsage: 'UUID',
    summary: 'have a GPU work again (operators)',
    flags: [],
    run: requestState('uncordon'),
  },
  {
    name: 'workload',
    argsUsage: '(add NAME | list | rate ID RATE | remove ID | run -- COMMAND)',
    summary: 'register processes on GPUs that are no functions, or start them as MPS clients',
    flags: [
      { name: 'device', type: 'string', help: 'the GPU, by its `UUID` (default: the one with most free memory)' },
      { name: 'pid', type: 'int', help: 'the process of one that runs (add)' },
      { name: 'memory', type: 'int', help: 'the memory that it may hold, in `MiB`' },
      {
        name: 'degradation',
        type: 'string',
        help: 'how much slower it may get, a `FRACTION` from 0 to 1 (default: 0.05)',
      },
      {
        name: 'baseline',
        type: 'string',
        help: 'its `RATE` alone on the GPU, per second (default: measured while no function runs there)',
      },
      {
        name: 'features',
        type: 'string',
        help: 'figures of it for predictions beside functions: `JSON`, or a file of it, as of wsk gpu features',
      },
      { name: 'name', type: 'string', help: 'its `NAME` (run; default: that of the command)' },
      { name: 'percent', type: 'int', help: 'the `PERCENT` of the SMs that it may use (run)' },
      {
        name: 'progress',
        type: 'string',
        help: 'find its count of steps in its output: a regular expression, `PATTERN`, with one group (run)',
      },
      { name: 'progress-log', type: 'string', help: 'find the count in `FILE` as it grows instead (run)' },
      { name: 'progress-is', type: 'string', help: '`MEANING` of the group: count, or rate per second (run)' },
    ],
    run: workload,
  },
  { name: 'workloads', summary: 'list processes on GPUs that are no functions', flags: [], run: listWorkloads },
  { name: 'nodes', summary: 'list nodes with GPUs, and rented machines (operators)', flags: [], run: listNodes },
  {
    name: 'rent',
    argsUsage: 'COUNT',
    summary: 'set how many rented nodes there are to be (operators)',
    flags: [],
    run: rentNodes,
  },
  {
    name: 'notice',
    argsUsage: 'INVOKER',
    summary: 'announce that a node will be taken away: it takes no new work, and its runs end in time (operators)',
    flags: [
      { name: 'in', type: 'int', help: 'it is taken away in `SECONDS`' },
      { name: 'withdraw', type: 'bool', help: 'it stays, and takes work again' },
    ],
    run: noticeNode,
  },
  {
    name: 'cost',
    summary: 'show what functions cost: price of the node times share of its GPU-seconds',
    flags: [
      { name: 'days', type: 'int', help: 'of the last `DAYS` (default: 30)' },
      { name: 'csv', type: 'bool', help: 'print CSV' },
    ],
    run: showCost,
  },
];

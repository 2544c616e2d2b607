// Inference functions of SMORE's experiments: its eight models, in batches that were measured over shares.
import { readTable } from '@gpuwhisk/bench/data/csv';
import { readStandInModel } from '@gpuwhisk/bench/stand-in-model';
import { saturationOf, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import { latencySurface, type LatencySurface } from '../model/latency-surface.js';
import type { PowerPoint } from '../model/igniter.js';
import { invented, type CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { readRappSurfaces, timeOverShare } from '../workloads/surfaces.js';

/** A model of SMORE's table I, with the measurements that stand for it. */
interface FunctionModel {
  name: string;
  /** Warm start of one request on an RTX 3090, ms (SMORE, table II). */
  warmMs: number;
  /** The surface that gives its time over batch and share, and where that is from; `isOwn`: it is of the model itself. */
  surface: string;
  from: 'rapp' | 'dilu';
  isOwn: boolean;
  /** The row of measured utilisations (RTX 3080) that gives its traffic. */
  traffic: string;
  /** The row of the stand-in's parameters that gives its memory. */
  sizes: string;
}

const models: readonly FunctionModel[] = [
  { name: 'VGG-16', warmMs: 3, surface: 'vgg16', from: 'rapp', isOwn: true, traffic: 'vgg16', sizes: 'vgg16' },
  {
    ...{ name: 'MobileNet', warmMs: 9, surface: 'mobilenet_v3_large', from: 'rapp', isOwn: true },
    ...{ traffic: 'mobilenet_v2', sizes: 'mobilenet' },
  },
  { name: 'DeepViT', warmMs: 11, surface: 'maxvit_t', from: 'rapp', isOwn: false, traffic: 'bert', sizes: 'deepvit' },
  {
    ...{ name: 'ResNet-50', warmMs: 13, surface: 'resnet50', from: 'rapp', isOwn: true },
    ...{ traffic: 'resnet50', sizes: 'resnet50' },
  },
  { name: 'BERT', warmMs: 37, surface: 'bert_base', from: 'dilu', isOwn: true, traffic: 'bert', sizes: 'bert' },
  {
    ...{ name: 'RoBERTa', warmMs: 10, surface: 'roberta_large', from: 'dilu', isOwn: false },
    ...{ traffic: 'bert', sizes: 'roberta' },
  },
  {
    ...{ name: 'DeepFM', warmMs: 8, surface: 'mobilenet_v3_small', from: 'rapp', isOwn: false },
    ...{ traffic: 'lenet', sizes: 'deepfm' },
  },
  { name: 'SegNet', warmMs: 50, surface: 'vgg16_bn', from: 'rapp', isOwn: false, traffic: 'vgg16', sizes: 'segnet' },
] as const;

/** Names of the models. */
export const functionModels: readonly string[] = models.map(({ name }) => name);

/** Batches of a request. RaPP's surfaces end at 8; SMORE's batches end at 32. */
export const functionBatches: readonly number[] = [1, 2, 4, 8];

/** The name of a function: its model and batch. */
export const functionName = (model: string, batch: number): string => `${model}-${batch}`;

/**
 * The functions: time alone on an RTX 3090 from SMORE's table II, over batch and share as RaPP's (V100) and Dilu's (A100)
 * surfaces say, traffic of an RTX 3080, the mean power of iGniter's models, memory from the stand-in's parameters.
 */
export async function readFunctions(
  power: readonly PowerPoint[],
  idleW: number,
  folder?: string,
): Promise<CatalogueEntry[]> {
  const rapp = await readRappSurfaces(new Set(models.map(({ surface }) => surface)), folder);
  const dilu = await readDiluSurfaces(folder);
  const columns = {
    gpu: 'text',
    model: 'text',
    batch: 'number',
    l2_util_pct: 'number',
    dram_util_pct: 'number',
  } as const;
  const utils = await readTable('surfaces/glet_gpu_util.csv', columns, folder);
  const standIn = readStandInModel();
  const full = power.filter(({ share }) => share === 1);
  const powerW = full.reduce((sum, one) => sum + one.powerW - idleW, 0) / full.length;
  return models.flatMap(({ name: model, warmMs, surface: of, from, isOwn, traffic, sizes: row }) => {
    const surface = (from === 'rapp' ? rapp : dilu).get(of);
    const sizes = standIn.workloads.find(({ name }) => name === row);
    if (!surface || !sizes) throw new RangeError(`${model} lacks a surface or memory`);
    return functionBatches.map((batch): CatalogueEntry => {
      const util = utils.find((one) => one.gpu === '3080' && one.model === traffic && one.batch === batch);
      if (!util) throw new RangeError(`${model} lacks traffic`);
      const name = functionName(model, batch);
      const stretch = stretchTable(timeOverShare(surface, batch));
      return {
        name,
        class: 'inference',
        batch,
        unitMs: (warmMs * timeOverShare(surface, batch)(1)) / timeOverShare(surface, 1)(1),
        memoryMiB: Math.round(sizes.weightsMiB + batch * sizes.itemMiB),
        model: {
          name,
          stretch,
          saturation: saturationOf(stretch, fillTolerance),
          l2Util: util.l2_util_pct / 100,
          dramUtil: util.dram_util_pct / 100,
          powerW,
        },
        sources: {
          unitMs: `SMORE, table II, times ${from} ${of}`,
          memoryMiB: invented,
          stretch: isOwn ? `${from} ${of}` : invented,
          traffic: `glet_gpu_util 3080 ${traffic}`,
        },
      };
    });
  });
}

/**
 * A function fills the smallest share within this part of its time at the full share. At 0.02, as elsewhere in the replay, the
 * noise of RaPP's host-bound points decides: MobileNet would fill 98 % of the GPU at batch 1 and 38 % at batch 2.
 */
const fillTolerance = 0.05;

async function readDiluSurfaces(folder?: string): Promise<Map<string, LatencySurface>> {
  const columns = { model: 'text', batch: 'number', sm_pct: 'number', latency_s: 'number' } as const;
  const rows = await readTable('surfaces/dilu_a100_inference.csv', columns, folder);
  return new Map(
    ['bert_base', 'roberta_large'].map((name) => [
      name,
      latencySurface(
        rows
          .filter(({ model }) => model === name)
          .map((row) => ({ batch: row.batch, share: row.sm_pct / 100, latencyMs: row.latency_s * 1000 })),
      ),
    ]),
  );
}

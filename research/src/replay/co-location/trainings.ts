// Training jobs of SMORE's experiments, by the measured jobs that stand for them.
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

/** One of the six set-ups of the eight-GPU experiments (thesis section 5.4.2): the training job of each GPU in turn. */
export interface TrainingSetUp {
  name: string;
  trainings: readonly string[];
}

const mobileNet = 'MobileNetV2-CIFAR-10';
const neuMf = 'NeuMF-MovieLens';

/** Four jobs of each model, from little to much use of the GPU; of the same batch the first alone. */
const byModel: Readonly<Record<string, readonly string[]>> = {
  MobileNet: [`${mobileNet}-32-amp`, `${mobileNet}-64-amp`, `${mobileNet}-128-amp`, `${mobileNet}-64`],
  DeepFM: [`${neuMf}-64`, `${neuMf}-64-amp`, `${neuMf}-128-amp`, `${neuMf}-128`],
  RoBERTa: ['BERT-SQuAD-32', 'BERT-SQuAD-32-amp', 'Transformer-Multi30k-64', 'Transformer-Multi30k-32'],
};

/**
 * The six set-ups: MobileNet, DeepFM and RoBERTa, of the same batch and of mixed ones. Of the measured jobs (Lucid, RTX
 * 3090) MobileNetV2 stands for MobileNet, NeuMF (also a recommender) for DeepFM, BERT and Transformer for RoBERTa.
 */
export const setUps: readonly TrainingSetUp[] = Object.entries(byModel).flatMap(([model, jobs]) => [
  { name: `${model}-same`, trainings: jobs.slice(0, 1) },
  { name: `${model}-mix`, trainings: jobs },
]);

/** Jobs of all three models. The paper does not name those of its comparison (section VIII-D). */
export const comparedTrainings: readonly string[] = [0, 1, 2]
  .flatMap((at) => Object.values(byModel).map((jobs) => jobs[at] ?? ''))
  .slice(0, 8);

/** The job of the experiment on one GPU (thesis section 5.4.1). */
export const singleTraining: readonly string[] = [`${mobileNet}-32-amp`];

/** All that occur. */
export function trainingsOf(lucid: readonly CatalogueEntry[]): CatalogueEntry[] {
  const names = Object.values(byModel).flat();
  return names.map((name) => {
    const found = lucid.find((entry) => entry.name === name);
    if (found === undefined) throw new RangeError(`no training job '${name}' was measured`);
    return found;
  });
}

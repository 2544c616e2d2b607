import { TrainingSet } from '@gpuwhisk/gpu/predict/samples';
import { encodeDocument, documentId } from '@gpuwhisk/controller/gpu/learning/performance-store';
import { seededRandom } from '@gpuwhisk/common/system/random';

const kind = { gpuType: 'a100-40', mode: 'mps' } as const;
const name = `${kind.gpuType}/${kind.mode}`;
const headers = { 'content-type': 'application/json' };

/** Stores enough measured runs in a cluster's database for the training of a predictor. */
export async function putSamples(couchdbUrl: string): Promise<void> {
  const set = new TrainingSet(seededRandom(1));
  for (let at = 1; at <= 40; at += 1) {
    const features = { smUtil: (at % 7) / 7, dramUtil: (at % 5) / 5, l2Util: (at % 3) / 3 };
    set.add({ one: { features, share: at / 40 }, others: [], slowdown: 40 / at });
  }
  const text = JSON.stringify({ ...kind, state: set.state() });
  const document = encodeDocument({ kind: 'samples', name }, { ...kind, text }, Date.now());
  const answer = await fetch(`${couchdbUrl}/whisk_local_gpu`, {
    ...{ method: 'POST', headers },
    body: JSON.stringify(document),
  });
  if (!answer.ok) throw new Error(`the samples could not be stored: ${await answer.text()}`);
}

/** The predictor that was trained on these runs, or undefined if there is none yet. */
export async function learnedModel(couchdbUrl: string): Promise<unknown> {
  const id = encodeURIComponent(documentId({ kind: 'model', name }));
  const answer = await fetch(`${couchdbUrl}/whisk_local_gpu/${id}`);
  const body: unknown = await answer.json();
  return answer.ok ? body : undefined;
}

import type { CoLocated, SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';

const mostRemembered = 200_000;

/** A predictor that caches answers; replays under one truth repeat the same questions. */
export function remembering(predictor: SlowdownPredictor): SlowdownPredictor {
  const known = new Map<string, number>();
  const text = ({ features: { smUtil, dramUtil, l2Util }, share }: CoLocated): string =>
    `${smUtil} ${dramUtil} ${l2Util} ${share}`;
  return {
    slowdown(one, others) {
      const key = `${text(one)};${others.map(text).join()}`;
      let slowdown = known.get(key);
      if (slowdown === undefined) {
        if (known.size >= mostRemembered) known.clear();
        known.set(key, (slowdown = predictor.slowdown(one, others)));
      }
      return slowdown;
    },
  };
}

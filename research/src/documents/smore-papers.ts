// Figures of SMORE's paper (TPDS 2025) and thesis (2026), as fractions unless the name has a unit.

/** Figure 5.10 of the thesis (figure 14 of the paper): 8 × RTX 3090, 16,000 requests a minute. */
export const paperComparison: Readonly<Record<string, Readonly<Record<'dsr' | 'gui' | 'sfd' | 'sld', number>>>> = {
  smore: { dsr: 0.65, gui: 0.2, sfd: 0.017, sld: 0.19 },
  edfDegradation: { dsr: 0.66, gui: 0.19, sfd: 0.025, sld: 0.21 },
  edfUtil: { dsr: 0.5, gui: 0.28, sfd: 0.011, sld: 0.34 },
  random: { dsr: 0.45, gui: 0.29, sfd: 0.037, sld: 0.33 },
};

/** Figure 5.5 of the thesis: part of the requests that is admitted on one GPU, by model, read off the text. */
export const paperAdmitted: Readonly<Record<string, string>> = {
  'VGG-16': 'about 50 %',
  MobileNet: 'about 100 %',
  DeepViT: 'about 50 %',
  'ResNet-50': 'not stated',
  BERT: 'about 50 %',
  RoBERTa: 'about 100 %',
  DeepFM: 'about 100 %',
  SegNet: 'about 10 %',
};

/** Section 5.4.1 of the thesis: one GPU with MobileNet, 390 requests in 20 s. */
export const paperSingle: Readonly<Record<string, string>> = {
  admitted: '65 % at the peak',
  below10: 'over 50 %',
  below100: 'about 95 %',
  sfd: 'at most 10 % (bound)',
  usedAlone: '20 to 30 %',
  used: 'peaks of 50 to 60 %',
};

/** Figure 5.9 of the thesis: use of the SMs by the training job alone, and with functions. */
export const paperUse: Readonly<Record<string, readonly [alone: string, together: string]>> = {
  MobileNet: ['about 30 %', 'over 50 %'],
  DeepFM: ['15 to 16 %', '47 to 49 %'],
  RoBERTa: ['88 to 93 %', '3 to 5 % more'],
};

/** Figure 5.7 of the thesis: mean degradation of functions by set-up, where the text states it. */
export const paperFunctionDegradation: Readonly<Record<string, string>> = {
  'MobileNet-same': '33 %',
  'RoBERTa-mix': '39 % (named BERT-mix there)',
};

/** Figure 5.11 of the thesis and section VIII-E of the paper: microseconds a decision. */
export const paperCostUs: Readonly<Record<string, number>> = { 'best.8': 10, 'best.1024': 795, 'fast.1024': 106 };

/** Table V of the paper: 1,024 samples of its own, a fifth of them to learn from. */
export const paperPredictor: Readonly<Record<string, readonly [rmsle: number, mae: number]>> = {
  forest: [0.305, 0.473],
  bagging: [0.314, 0.494],
  ridge: [0.87, 0.721],
};

/** Figure 5.12 of the thesis: one A100 with MIG, 4,500 requests a minute, as far as the text states it. */
export const paperGeometries: Readonly<Record<string, readonly [dsr: string, gui: string]>> = {
  '4g-3g': ['33 to 40 %', '2 to 12 %'],
  '3g-2g-2g': ['about 40 %', 'about 12 %'],
  '4g-2g-1g': ['33 to 40 %', 'about 2 %'],
};

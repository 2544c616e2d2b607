// Figures of PROTEAN's paper (Middleware 2024) that stand beside ours. Fractions are fractions.

/** Schemes: the name in figures, and in tables. */
export const schemeNames = [
  ['protean', '`protean`'],
  ['molecule', 'Molecule'],
  ['infless', 'INFless/Llama'],
  ['naive', 'Naive Slicing'],
] as const;
export type SchemeName = (typeof schemeNames)[number][0];

/** Strict requests within their SLO as the paper states them, with the condition; most are shown as plots only. */
export const paperCompliance: Readonly<Record<string, Partial<Record<SchemeName, string>>>> = {
  compliance: {
    protean: '99.74 % (VGG 19)',
    infless: '73.76 % (VGG 19)',
    molecule: 'up to 62 points below PROTEAN',
    naive: 'up to 32 points below PROTEAN',
  },
  erratic: { protean: '99.90 % (MobileNet)' },
  language: { infless: '5.92 % (mean)', protean: 'up to 93 points above others' },
  generative: { protean: '90 % (mean)', molecule: '61.45 % (GPT-1), 79 % (GPT-2)', infless: '0 %' },
  tight: { protean: '94.38 % (ResNet 50)' },
  strict25: { protean: 'at least 99.96 %', naive: '97.86 % (ShuffleNet V2)' },
  strict75: { protean: '99.99 % (ShuffleNet V2), 93.78 % (DPN 92)' },
  strict100: { protean: '94.19 %', molecule: '60.12 %', infless: '0.42 %', naive: '54.31 %' },
};

/** Table 5: P50 and P99 of best effort alone, ms. */
export const paperBestEffort: Partial<Record<SchemeName, readonly [number, number]>> = {
  molecule: [68, 165],
  naive: [50, 99],
  infless: [57, 130],
  protean: [35, 138],
};

/** Models whose short names keys and tables use, by what the vendor's name says. The first that fits counts. */
const models: [RegExp, string][] = [
  [/\bA100\b.*\b40 ?GB/i, 'a100-40'],
  [/\bA100\b.*\b80 ?GB/i, 'a100-80'],
  [/\bH100\b/i, 'h100'],
  [/\bH200\b/i, 'h200'],
  [/\bRTX 3090\b/i, 'rtx3090'],
];

/** The short name of a model, from the vendor's: `NVIDIA A100-SXM4-40GB` is `a100-40`, `NVIDIA L4` is `l4`. */
export function deviceType(name: string): string {
  const known = models.find(([pattern]) => pattern.test(name));
  if (known) return known[1];
  const words = name.replace(/^(NVIDIA|Tesla|GeForce|\s)+/i, '').replace(/\(.*\)/, '');
  return words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}

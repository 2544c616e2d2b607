const units = { B: 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 } as const;

/** `1 MB`, `512KB`, `2 G` → bytes; undefined for anything else. */
export function parseByteSize(text: string): number | undefined {
  const match = /^\s?(\d+)\s?(GB|MB|KB|B|G|M|K)\s?$/i.exec(text);
  if (match === null) return undefined;
  const unit = match[2]?.charAt(0).toUpperCase() as keyof typeof units;
  return Number(match[1]) * units[unit];
}

/** Bytes as OpenWhisk writes a size: the largest unit that leaves a whole number, `1048576` → `1 MB`. */
export function formatByteSize(bytes: number): string {
  for (const unit of ['G', 'M', 'K'] as const) {
    if (bytes >= units[unit] && bytes % units[unit] === 0) return `${bytes / units[unit]} ${unit}B`;
  }
  return `${bytes} B`;
}

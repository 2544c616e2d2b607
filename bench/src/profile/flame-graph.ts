import { totalUs, type StackFrame, type StackNode } from './cpu-profile.js';
import { partOf, serverParts } from './parts.js';

const width = 1200;
const rowHeight = 16;
const top = 46;
/** Functions below this share of the time, and deeper ones, are not drawn: they bound the size of the file. */
const leastShare = 0.003;
const deepest = 40;
/** Average width of a character, pixels. */
const characterWidth = 6.2;

interface Box {
  depth: number;
  /** Where it begins and how long it is, as fractions of the whole. */
  from: number;
  share: number;
  frame: StackFrame;
  part: string;
}

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** A flame graph of the time in which the thread worked, as an SVG document: callers above callees, coloured by part. */
export function flameGraph(title: string, tree: StackNode): string {
  const working = withoutIdle(merged([tree]))[0] ?? tree;
  const boxes = boxesOf(working);
  const rows = Math.max(0, ...boxes.map(({ depth }) => depth)) + 1;
  const height = top + rows * rowHeight + 10;
  const parts = serverParts.filter((part) => boxes.some((box) => box.part === part));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="6" y="16" font-size="13">${escape(title)}</text>`,
    ...parts.map((part, at) => legend(part, at, parts.length)),
    ...boxes.map(drawn),
    '</svg>\n',
  ].join('\n');
}

function legend(part: string, at: number, count: number): string {
  const x = 6 + (at * (width - 12)) / count;
  return `<rect x="${x.toFixed(0)}" y="24" width="10" height="10" fill="${colourOf(part)}"/><text x="${(x + 13).toFixed(0)}" y="33">${escape(part)}</text>`;
}

function colourOf(part: string): string {
  const at = serverParts.indexOf(part);
  return `hsl(${Math.round((at * 360) / serverParts.length)},65%,${at % 2 === 0 ? 72 : 80}%)`;
}

function drawn({ depth, from, share, frame, part }: Box): string {
  const x = (from * width).toFixed(1);
  const y = top + depth * rowHeight;
  const boxWidth = share * width;
  const place = frame.file === '' ? '' : ` ${frame.file}:${frame.line}`;
  const room = Math.floor((boxWidth - 4) / characterWidth);
  const label = frame.name.length <= room ? frame.name : frame.name.slice(0, Math.max(0, room - 1));
  const text = room < 3 ? '' : `<text x="${(from * width + 2).toFixed(1)}" y="${y + 12}">${escape(label)}</text>`;
  const tip = `<title>${escape(`${frame.name}${place}: ${(100 * share).toFixed(1)} %, ${part}`)}</title>`;
  return `<g>${tip}<rect x="${x}" y="${y}" width="${boxWidth.toFixed(1)}" height="${rowHeight - 1}" fill="${colourOf(part)}"/>${text}</g>`;
}

/** The nodes with those of the same function merged, at every level. */
function merged(nodes: readonly StackNode[]): StackNode[] {
  const byFunction = new Map<string, StackNode>();
  for (const { frame, selfUs, children } of nodes) {
    const key = `${frame.name} ${frame.file}:${frame.line}`;
    const known = byFunction.get(key);
    if (known === undefined) byFunction.set(key, { frame, selfUs, children: [...children] });
    else {
      known.selfUs += selfUs;
      known.children.push(...children);
    }
  }
  return [...byFunction.values()].map((node) => ({ ...node, children: merged(node.children) }));
}

function withoutIdle(nodes: readonly StackNode[]): StackNode[] {
  return nodes
    .filter(({ frame }) => frame.name !== '(idle)')
    .map((node) => ({ ...node, children: withoutIdle(node.children) }));
}

function boxesOf(root: StackNode): Box[] {
  const wholeUs = totalUs(root);
  const boxes: Box[] = [];
  const visit = (node: StackNode, above: readonly StackFrame[], fromUs: number): void => {
    const share = totalUs(node) / wholeUs;
    if (!(share >= leastShare) || above.length > deepest) return;
    const stack = [...above, node.frame];
    boxes.push({ depth: above.length, from: fromUs / wholeUs, share, frame: node.frame, part: partOf(stack) });
    let at = fromUs;
    for (const child of node.children.toSorted((a, b) => totalUs(b) - totalUs(a))) {
      visit(child, stack, at);
      at += totalUs(child);
    }
  };
  visit(root, [], 0);
  return boxes;
}

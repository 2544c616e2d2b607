// Parts of a warm invocation, and which functions of the server belong to which part.
import type { StackFrame, StackNode } from './cpu-profile.js';

/** Functions of a part: `frame` matches `NAME FILE`; with `under`, only below a caller that `under` matches. */
interface Rule {
  part: string;
  frame: RegExp;
  under?: RegExp;
}

/**
 * The rules by which a sample gets its part: the innermost function that a rule matches decides, by the first rule that does.
 * Functions of Node that no rule names belong to their callers.
 */
const rules: readonly Rule[] = [
  { part: 'idle', frame: /^\(idle\)/ },
  { part: 'collector', frame: /^\(garbage collector\)/ },
  { part: 'socket', frame: /^(write\w*|readStart|readStop|shutdown) $/, under: / node:_http/ },
  { part: 'answer', frame: / controller\/src\/(http\/(answer|invocation)|api\/)/ },
  { part: 'authentication', frame: / controller\/src\/authentication\// },
  { part: 'limits', frame: / (controller\/src\/entitlement|common\/src\/state)\// },
  { part: 'merge', frame: / controller\/src\/(actions|entities|invoke)\// },
  { part: 'HTTP', frame: / (node:_http|node:internal\/(http|url)|controller\/src\/http\/)/ },
  { part: 'HTTP', frame: / controller\/src\/create-controller/ },
  { part: 'log', frame: / common\/src\/(bus\/(append-log|durable|file-log|log-format)|system\/disk)/ },
  { part: 'message', frame: / (controller\/src\/(dispatch|balance)|common\/src\/(bus|messages))/ },
  { part: 'message', frame: / common\/src\/activations\/activation-feed/ },
  { part: 'pool', frame: / invoker\/src\/pool\// },
  { part: 'frame', frame: / invoker\/src\/containers\// },
  { part: 'record', frame: / common\/src\/(activations|store|entities\/activation)/ },
  { part: 'run', frame: / invoker\/src\/(activation|create-invoker|invoker)/ },
  { part: 'metrics', frame: / (common\/src\/metrics|node_modules\/prom-client)/ },
];

/** Rules for samples below no function that a rule matches. */
const fallbacks: readonly Rule[] = [
  { part: 'socket', frame: / node:(net|internal\/stream)/ },
  { part: 'event loop', frame: /^\(program\)/ },
  { part: 'event loop', frame: / node:internal\/(process|timers|async_hooks)/ },
  { part: 'event loop', frame: /^runMicrotasks / },
];

/** The parts of a server's processor time in the order in which an invocation passes through them; `other` is the rest. */
export const serverParts: readonly string[] = [
  'socket',
  'HTTP',
  'authentication',
  'limits',
  'merge',
  'message',
  'log',
  'pool',
  'run',
  'frame',
  'answer',
  'record',
  'metrics',
  'event loop',
  'collector',
  'other',
];

/** The part of a stack of functions, the innermost last. */
export function partOf(stack: readonly StackFrame[]): string {
  const texts = stack.map(({ name, file }) => `${name} ${file}`);
  const found = (among: readonly Rule[]): string | undefined => {
    for (let at = texts.length - 1; at >= 0; at -= 1) {
      const rule = among.find(
        ({ frame, under }) =>
          frame.test(texts[at] ?? '') && (!under || texts.slice(0, at).some((one) => under.test(one))),
      );
      if (rule !== undefined) return rule.part;
    }
    return undefined;
  };
  return found(rules) ?? found(fallbacks) ?? 'other';
}

/** Time of the samples of each part, µs; `idle` is one. */
export function timeByPart(tree: StackNode): Map<string, number> {
  const times = new Map<string, number>();
  const visit = ({ frame, selfUs, children }: StackNode, above: readonly StackFrame[]): void => {
    const stack = [...above, frame];
    if (selfUs > 0) {
      const part = partOf(stack);
      times.set(part, (times.get(part) ?? 0) + selfUs);
    }
    for (const child of children) visit(child, stack);
  };
  visit(tree, []);
  return times;
}

// Texts of other people on the page.
import { options } from 'preact';
import type { ComponentChildren } from 'preact';

/** Controls without tab and line ends, and those that reorder text of two directions. */
const controls = /(?![\t\n\r])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** The text without control characters, by which a name would look like another one. */
export function printable(text: string): string {
  return text.replace(controls, '');
}

function shown(children: ComponentChildren): ComponentChildren {
  if (typeof children === 'string') return printable(children);
  return Array.isArray(children) ? children.map(shown) : children;
}

/** Attributes that browsers show or read out. */
const shownAttributes = ['title', 'aria-label', 'placeholder'];

/** Has all texts of the page's elements printed without control characters; values of inputs are left as they are. */
export function printTextsOnly(): void {
  const before = options.vnode;
  options.vnode = (vnode) => {
    if (typeof vnode.type === 'string') {
      const props = vnode.props as Record<string, unknown>;
      if ('children' in props) props.children = shown(props.children as ComponentChildren);
      for (const name of shownAttributes) {
        const { [name]: text } = props;
        if (typeof text === 'string') props[name] = printable(text);
      }
    }
    before?.(vnode);
  };
}

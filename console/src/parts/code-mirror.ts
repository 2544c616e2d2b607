// The editor itself: a file of its own, which is loaded when code is shown first.
import { javascript } from '@codemirror/lang-javascript';
import { python } from '@codemirror/lang-python';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { tags } from '@lezer/highlight';
import { EditorView, basicSetup } from 'codemirror';

/** Colours are those of the style sheet, in light and dark; nothing is inherited into the shadow root but variables. */
const theme = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--ground)', maxHeight: '28rem', fontSize: '13px' },
  '.cm-scroller': { overflow: 'auto', fontFamily: 'ui-monospace, monospace' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-gutters': { color: 'var(--soft)', backgroundColor: 'var(--ground)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused': { outline: '2px solid var(--busy)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--idle)',
  },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-panels': { color: 'var(--ink)', backgroundColor: 'var(--ground)' },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: 'var(--busy)' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--bad)' },
  { tag: [tags.comment], color: 'var(--soft)', fontStyle: 'italic' },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.className], fontWeight: '600' },
]);

/**
 * Types over a selection by the editor's own means. The browser's leave elements with a style attribute, which the content
 * security policy refuses with a note.
 */
const typedOver = EditorView.domEventHandlers({
  beforeinput({ inputType, data }, view) {
    const { state, composing } = view;
    const { from, to, empty } = state.selection.main;
    if (inputType !== 'insertText' || data === null || empty || composing || state.readOnly) return false;
    const insert = () => state.update(state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true });
    const isHandled = state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert));
    if (!isHandled) view.dispatch(insert());
    return true;
  },
});

/** A place for code in a page. */
export interface EditorPlace {
  host: HTMLElement;
  text: string;
  /** Kind of the action. */
  kind: string;
  label: string;
  /** Absent: the code is only read. */
  onChange?: (text: string) => void;
}

/**
 * Shows an editor in a shadow root of the host: there its styles are style sheets that are adopted, which the content
 * security policy allows. Returns a function that removes it.
 */
export function showEditor({ host, text, kind, label, onChange }: EditorPlace): () => void {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const language = kind.startsWith('nodejs') ? [javascript()] : kind.startsWith('python') ? [python()] : [];
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        basicSetup,
        ...language,
        theme,
        typedOver,
        syntaxHighlighting(colours),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorState.readOnly.of(onChange === undefined),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) onChange?.(state.doc.toString());
        }),
      ],
    }),
  });
  return () => view.destroy();
}

import { useEffect, useState } from 'preact/hooks';
import { pathOf } from '../activation-model.js';
import { CodeEditor } from '../parts/code-editor.js';
import { hrefOf } from '../route.js';
import { ask, serverInfo } from '../session.js';

/** Families of kinds whose code is text, with code to begin with. */
const beginnings: Readonly<Record<string, string>> = {
  nodejs: "function main({ name = 'you' }) {\n  return { greeting: `Hello ${name}` };\n}\n",
  python: "def main(args):\n    return {'greeting': f\"Hello {args.get('name', 'you')}\"}\n",
  ruby: "def main(args)\n  { greeting: \"Hello #{args['name'] || 'you'}\" }\nend\n",
  php: "<?php\nfunction main(array $args): array\n{\n    return ['greeting' => 'Hello ' . ($args['name'] ?? 'you')];\n}\n",
  go: 'package main\n\nfunc Main(args map[string]interface{}) map[string]interface{} {\n\tname, ok := args["name"].(string)\n\tif !ok {\n\t\tname = "you"\n\t}\n\treturn map[string]interface{}{"greeting": "Hello " + name}\n}\n',
};

const familyOf = (kind: string): string => kind.split(':')[0] ?? '';
const beginningOf = (kind: string): string => beginnings[familyOf(kind)] ?? '';

/** A form that makes a function of code that is typed in. */
export function NewFunctionPage() {
  const [kinds, setKinds] = useState<readonly string[]>([]);
  const [name, setName] = useState('');
  const [kind, setKind] = useState('');
  const [memory, setMemory] = useState('');
  const [code, setCode] = useState('');
  const [isSaving, setSaving] = useState(false);
  const [problem, setProblem] = useState('');
  const fail = (error: unknown): void => setProblem(error instanceof Error ? error.message : String(error));
  /** The text with which the editor begins; what is typed is `code`. */
  const [text, setText] = useState('');
  const begin = (chosen: string): void => {
    const isTyped = code !== beginningOf(kind);
    const kept = isTyped ? code : beginningOf(chosen);
    setKind(chosen);
    setCode(kept);
    setText(kept);
  };
  useEffect(() => {
    serverInfo().then(({ runtimes }) => {
      const known = Object.values(runtimes)
        .flat()
        .filter((one) => !one.deprecated && familyOf(one.kind) in beginnings);
      setKinds(known.map((one) => one.kind));
      begin((known.find((one) => one.default) ?? known[0])?.kind ?? '');
    }, fail);
  }, []);
  const save = async (): Promise<void> => {
    const gpu = memory === '' ? [] : [{ key: 'gpu', value: { memoryMiB: Number(memory) } }];
    const body = JSON.stringify({ exec: { kind, code }, annotations: gpu });
    await ask(`namespaces/_/actions/${pathOf(name.trim())}`, { method: 'PUT', body });
    location.hash = hrefOf('functions', name.trim());
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isSaving) return;
    setSaving(true);
    setProblem('');
    save()
      .catch(fail)
      .finally(() => setSaving(false));
  };
  return (
    <>
      <h1>New function</h1>
      <form onSubmit={submit}>
        <p class="filter">
          <label>
            Name <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          <label>
            Kind{' '}
            <select value={kind} onChange={(event) => begin(event.currentTarget.value)}>
              {kinds.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
          <label>
            GPU memory (MiB; empty: no GPU){' '}
            <input type="number" min={1} value={memory} onInput={(event) => setMemory(event.currentTarget.value)} />
          </label>
        </p>
        <CodeEditor text={text} kind={kind} label="Code" onChange={setCode} />
        <p class="actions">
          <button type="submit" disabled={isSaving || kind === ''}>
            Create
          </button>
        </p>
      </form>
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <p>
        Archives, Java, native functions and images are made by <code>wsk action create</code>.
      </p>
    </>
  );
}

import { expect } from '@jest/globals';
import { logTexts } from '../../support/api-client.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import type { Trial } from '../trial.js';
import { pairs } from './json-arguments.js';

/** Code by language: puts a snowman between two `delimiter`s, logs the text and returns it as `winter`. */
const snowmen: Record<string, string> = {
  nodejs: `function main({ delimiter }) {
    const text = delimiter + ' ☃ ' + delimiter;
    console.log(text);
    return { winter: text };
  }`,
  python: `def main(args):
    text = args["delimiter"] + " ☃ " + args["delimiter"]
    print(text)
    return {"winter": text}
`,
  ruby: `def main(args)
  text = "#{args["delimiter"]} ☃ #{args["delimiter"]}"
  puts text
  { "winter" => text }
end
`,
  php: `<?php
function main(array $args): array {
  $text = $args["delimiter"] . " ☃ " . $args["delimiter"];
  echo $text . "\\n";
  return ["winter" => $text];
}
`,
};

/** The server's default kinds of the languages in `snowmen`. */
async function kindsOf({ user }: Trial): Promise<{ family: string; kind: string }[]> {
  type Runtimes = Record<string, { kind: string; default: boolean }[]>;
  const { body } = await user.send<{ runtimes: Runtimes }>('GET', '/', { authenticated: false });
  return Object.entries(body.runtimes).flatMap(([family, kinds]) =>
    family in snowmen ? kinds.filter((one) => one.default).map(({ kind }) => ({ family, kind })) : [],
  );
}

const rows: Row[] = [
  {
    fact: 'UTF-8 in source, arguments, logs and results, in every language that the server has',
    stands: 'WskUnicodeTests: Ensure that UTF-8 in supported in source files, input params, logs, and output results',
    source: 'tests/src/test/scala/system/basic/WskUnicodeTests.scala',
    run: async (t) => {
      const kinds = await kindsOf(t);
      expect(kinds.map(({ family }) => family)).toEqual(expect.arrayContaining(['nodejs', 'python']));
      for (const { family, kind } of kinds) {
        const name = await t.action(snowmen[family] ?? '', { kind });
        const { response, logs } = await t.run(name, { delimiter: '❄' });
        expect({ kind, result: response.result }).toEqual({ kind, result: { winter: '❄ ☃ ❄' } });
        expect(logTexts({ logs })).toContain('❄ ☃ ❄');
      }
    },
  },
  {
    fact: 'an update with code of another language keeps the parameters',
    stands: 'WskMultiRuntimeTests: update an action with different language and check preserving params',
    source: 'core/controller/.../core/controller/Actions.scala',
    run: async (t) => {
      const parameters = pairs({ name: 'this is a test' }) as { key: string; value: string }[];
      const name = await t.action("function main() { return { hello: 'node' }; }", { parameters });
      const python = 'def main(args):\n    print("Hello " + args["name"])\n    return {"hello": "python"}\n';
      await t.replace(`actions/${name}`, { exec: { kind: 'python:default', code: python } });
      const { response, logs } = await t.run(name);
      expect(response).toMatchObject({ status: 'success', result: { hello: 'python' } });
      expect(logTexts({ logs })).toEqual(['Hello this is a test']);
    },
  },
];

/** Actions in several languages. */
export const languageCases = table('languages', 'docs/actions.md', rows);

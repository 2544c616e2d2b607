import { globalFlags, helpFlag, withGlobals, type FlagSpec } from '../../args/flags.js';

/** What may follow some words of a command line. */
interface Node {
  /** `wsk_action_create`, as the script calls it. */
  id: string;
  words: string[];
}

/** A script that completes commands and flags of wsk in bash. */
export async function completionScript(): Promise<string> {
  const nodes = await allNodes();
  const cases = nodes.map(({ id, words }) => `    ${id}) words="${words.join(' ')}" ;;`);
  return `# bash completion for wsk -*- shell-script -*-

__wsk_words() {
  local words=""
  case "$1" in
${cases.join('\n')}
  esac
  echo "$words"
}

__wsk_complete() {
  local current="\${COMP_WORDS[COMP_CWORD]}" node="wsk" word index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case "$word" in -*) continue ;; esac
    if [ -n "$(__wsk_words "\${node}_\${word}")" ]; then node="\${node}_\${word}"; fi
  done
  COMPREPLY=($(compgen -W "$(__wsk_words "$node")" -- "$current"))
  if [ \${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}

complete -o default -F __wsk_complete wsk
`;
}

async function allNodes(): Promise<Node[]> {
  const { commandTable } = await import('../table.js');
  const nodes: Node[] = [
    { id: 'wsk', words: [...commandTable.map(({ name }) => name), 'help', ...flagWords(globalFlags)] },
  ];
  for (const entry of commandTable) {
    const loaded = await entry.load();
    const id = `wsk_${entry.name}`;
    if (!Array.isArray(loaded)) {
      nodes.push({ id, words: flagWords(withGlobals(loaded.flags)) });
      continue;
    }
    nodes.push({ id, words: [...loaded.map(({ name }) => name), ...flagWords(globalFlags)] });
    for (const command of loaded) {
      nodes.push({ id: `${id}_${command.name}`, words: flagWords(withGlobals(command.flags)) });
    }
  }
  return nodes;
}

function flagWords(flags: FlagSpec[]): string[] {
  return [...flags, helpFlag('')].flatMap(({ name, short }) => [`--${name}`, ...(short ? [`-${short}`] : [])]);
}

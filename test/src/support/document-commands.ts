// Commands of a document: its blocks of language sh, run as a reader types them, and the output in blocks of language text.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';

/** A block of commands with the block of output that follows it. */
export interface CommandBlock {
  commands: string;
  /** Absent: any. `…` stands for text of a line or, alone on its line, for any lines. */
  output?: string;
}

/** What a block printed, on stdout and stderr, and whether a command of it failed. */
interface Ran {
  output: string;
  failed: boolean;
}

/** A reader's terminal. */
export interface Terminal {
  run(commands: string): Promise<Ran>;
  /** Ends it and the processes that it started. */
  close(): void;
}

const blockMs = 60_000;
const pollMs = 10_000;
/** Blocks that only look: records and the states of GPUs appear shortly after the command before. */
const onlyLooks =
  /^((\w+=\$\()?wsk (activation|gpu (top|explain|job list)|\w+ (get|list)).*\n|curl .*\/invokers.*\n)+$/;

/** The blocks of a document, in order. */
export function blocksOf(markdown: string): CommandBlock[] {
  const blocks: CommandBlock[] = [];
  for (const [, language, text = ''] of markdown.matchAll(/^```(\w*)\n([^]*?)^```$/gm)) {
    if (language === 'sh') blocks.push({ commands: text });
    const last = blocks.at(-1);
    if (language === 'text' && last !== undefined && last.output === undefined) last.output = text;
  }
  return blocks;
}

/** A bash in a folder that looks like the clone at `repository`, and is removed at the end. */
export function openTerminal(repository: string): Terminal {
  const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-terminal-'));
  const clone = join(scratch, 'gpuwhisk');
  mkdirSync(clone);
  for (const name of readdirSync(repository)) symlinkSync(join(repository, name), join(clone, name));
  const env = { PATH: process.env['PATH'], HOME: scratch, TZ: 'UTC', LANG: 'C.UTF-8' };
  const shell = spawn('bash', ['--norc'], { cwd: clone, env, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  let printed = '';
  let told: (() => void) | undefined;
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    told?.();
  });
  shell.stdin.write("exec 2>&1; shopt -s expand_aliases; trap 'failed=1' ERR\n");
  let count = 0;
  return {
    async run(commands) {
      const mark = `end-of-block-${(count += 1)}`;
      const file = join(scratch, `${mark}.sh`);
      writeFileSync(file, commands);
      printed = '';
      shell.stdin.write(`failed=0; . ${file} < /dev/null\nprintf '%s %s\\n' ${mark} $failed\n`);
      const ended = new RegExp(`^([^]*)${mark} (\\d)\\n`);
      const deadline = performance.now() + blockMs;
      for (;;) {
        const [, output, failed] = ended.exec(printed) ?? [];
        if (output !== undefined) return { output, failed: failed === '1' };
        if (performance.now() > deadline) throw new Error(`Not within ${blockMs} ms:\n${commands}\n${printed}`);
        await Promise.race([after(100), new Promise<void>((resolve) => (told = resolve))]);
      }
    },
    close() {
      if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGKILL');
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

/**
 * Text in which ids, times, versions and widths of columns, which differ between runs, are the same. So are units of times:
 * wsk shows 0 ms as 0s.
 */
function steady(text: string): string {
  return text
    .replace(/\b[0-9a-f]{32}\b|\b[0-9a-f]{16}\b/g, 'ID')
    .replace(/\b(GPU|MIG)-[0-9a-f-]{36}\b/g, 'UUID')
    .replace(/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?/g, 'TIME')
    .replace(/\b\d{13}\b/g, 'EPOCH')
    .replace(/\b\d+(\.\d+)? ?(ms|s)\b/g, 'N s')
    .replace(/"(duration|ms|value|\w+Ms)": [\d.]+/g, '"$1": N')
    .replace(/\b(nodejs|python):[\d.]+/g, '$1')
    .replace(/[ \t]+/g, ' ')
    .replace(/ $/gm, '')
    .trim();
}

/** Whether a block printed what the document says. */
export function isAsTold(output: string, told: string): boolean {
  const quoted = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const lines = steady(told)
    .split('\n')
    .map((line) => (line.trim() === '…' ? '(?:[^\\n]*\\n)*?' : `${line.split('…').map(quoted).join('[^\\n]*')} *\\n`));
  return new RegExp(`^${lines.join('')}$`).test(`${steady(output)}\n`);
}

/** Runs a block until it prints what it should, if it only looks, and else once. Rejects with both outputs. */
export async function runBlock(terminal: Terminal, { commands, output: told }: CommandBlock): Promise<void> {
  const deadline = performance.now() + (onlyLooks.test(commands) ? pollMs : 0);
  for (;;) {
    const { output, failed } = await terminal.run(commands);
    if (!failed && (told === undefined || isAsTold(output, told))) return;
    if (performance.now() > deadline) {
      const expected = told === undefined ? '' : `\nThe document says:\n${told}`;
      throw new Error(`${commands}${failed ? 'failed' : 'printed something else'}:\n${output}${expected}`);
    }
    await after(200);
  }
}

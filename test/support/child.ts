/** Programs of this repository that a test runs as processes of their own. They end with the test's process. */

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface ChildOptions {
  /** Where the program's imports are resolved. @default the working directory */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Child {
  readonly pid: number;
  /** The next line on standard output; undefined at its end. */
  nextLine(): Promise<string | undefined>;
  /** Settles when the process is gone. */
  readonly exit: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly errors: string;
  }>;
  send(line: string): void;
  /** Ends its standard input. */
  end(): void;
  kill(signal: NodeJS.Signals): void;
}

/** Runs `node <program> <args>`. It is killed when the test's process exits. */
export function startChild(program: string, args: readonly string[], options: ChildOptions = {}): Child {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: options.cwd ?? process.cwd(),
    env: { ...process.env, ...options.env },
    stdio: 'pipe',
  });
  const killWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithUs);
  child.once('exit', () => process.off('exit', killWithUs));
  const errors: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid: child.pid ?? 0,
    exit: exitOf(child).then(({ code, signal }) => ({ code, signal, errors: errors.join('') })),
    async nextLine(): Promise<string | undefined> {
      const { value, done } = await lines.next();
      return done ? undefined : value;
    },
    send: (line) => void child.stdin.write(`${line}\n`),
    end: () => void child.stdin.end(),
    kill: (signal) => void child.kill(signal),
  };
}

function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (code, signal) => resolve({ code, signal }));
  });
}

/**
 * A client whose machine goes dark: from then on its kernel drops whatever arrives on the connection, acknowledges
 * nothing, and says nothing. A socket filter does it (socket(7), SO_ATTACH_FILTER), which Node cannot set and Python can.
 */

import { execFileSync, spawn } from 'node:child_process';

const SCRIPT = `
import ctypes, socket, struct, sys
client = socket.create_connection((sys.argv[1], int(sys.argv[2])))
client.sendall(sys.argv[3].encode())
text = b''
while sys.argv[4].encode() not in text:
    text += client.recv(65536) or sys.exit(text.decode())
drop = ctypes.create_string_buffer(struct.pack('HBBI', 0x06, 0, 0, 0))
client.setsockopt(socket.SOL_SOCKET, 26, struct.pack('HL', 1, ctypes.addressof(drop)))
print('dark', flush=True)
sys.stdin.read()
`;

/** Linux with a Python. */
export const canVanish: boolean = process.platform === 'linux' && hasPython();

export interface VanishingClientOptions {
  readonly url: string;
  /** What it sends. */
  readonly request: string;
  /** What it waits for before it goes dark. */
  readonly until: string;
}

/** Resolves when the client is dark. @returns ends its process. @throws with the answer, when that was another one. */
export async function startVanishingClient({ url, request, until }: VanishingClientOptions): Promise<() => void> {
  const { hostname, port } = new URL(url);
  const child = spawn('python3', ['-c', SCRIPT, hostname, port, request, until], { stdio: 'pipe' });
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject).once('exit', () => reject(new Error(errors)));
    child.stdout.once('data', () => resolve());
  });
  return end;
}

function hasPython(): boolean {
  try {
    execFileSync('python3', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

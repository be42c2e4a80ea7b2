/** A process that takes the lock of a folder when it reads a line, tells how that went, and keeps it until the end of its input. */

import { createInterface } from 'node:readline';
import { lockInstance } from '#infra/_shared/data-dir/instance-lock.ts';

const [, , directory = '.'] = process.argv;
process.stdout.write('ready\n');
for await (const _ of createInterface({ input: process.stdin })) {
  try {
    await lockInstance(directory);
    process.stdout.write('held\n');
  } catch (error) {
    process.stdout.write(`${String(error)}\n`);
  }
}

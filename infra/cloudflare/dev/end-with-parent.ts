/**
 * Imported into wrangler's processes: they end with the one that started them, however it ended, and workerd with them.
 * Their standard input is a pipe from it, on which nothing comes.
 */

const PATIENCE_MS = 5_000;

process.stdin.resume().once('end', function end() {
  process.kill(process.pid, 'SIGTERM');
  setTimeout(() => process.exit(1), PATIENCE_MS).unref();
});
process.stdin.unref();

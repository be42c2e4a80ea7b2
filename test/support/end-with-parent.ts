/** Imported before a program that does not read its standard input: its process ends with the one that started it. */

process.stdin.resume().once('end', () => process.exit(1));

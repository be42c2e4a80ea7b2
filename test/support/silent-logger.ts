/** A log that nobody reads. */

import type { Logger } from '#core/ports/logger.ts';

const ignore = (): void => undefined;

export const silentLogger: Logger = {
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  child: () => silentLogger,
};

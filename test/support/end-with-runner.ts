/** Set up in every worker: a runner that was killed must not leave workers, nor what they started, behind. */

process.once('disconnect', () => process.exit(1));

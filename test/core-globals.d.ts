/** All that the core may know of its platform, besides the language: what every runtime has. */

interface AbortSignal {
  readonly aborted: boolean;
  throwIfAborted(): void;
}

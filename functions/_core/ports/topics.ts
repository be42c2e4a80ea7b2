/** PORTS. The topics of a log that lives outside of PostgreSQL: what should be, and what is. */

/** How long the log keeps the events of a stream: until either bound is passed. */
export interface TopicSettings {
  readonly retentionMs: number;
  /** Absent: unbounded. */
  readonly retentionBytes: number | undefined;
}

/** A topic that is not yet as it should be. */
export type DueTopic =
  | { readonly name: string; readonly stream: bigint; readonly deed: 'ensure'; readonly settings: TopicSettings }
  | { readonly name: string; readonly stream: bigint; readonly deed: 'remove' };

/** A topic that events are published into. */
export interface CurrentTopic {
  readonly name: string;
  readonly stream: bigint;
  /** The first one that is known to be there. */
  readonly firstPosition: bigint;
  /** Of the last published event; absent when there is none in this topic. */
  readonly lastPosition: bigint | undefined;
  /** It was marked so. */
  readonly isMissing: boolean;
  /** What the brokers knew it by when it was made ready; undefined when they have nothing of the kind. */
  readonly identity: string | undefined;
}

/** What should be, in PostgreSQL: one topic for each stream, with the settings that its tenant asks for. */
export interface Topics {
  /** @param defaults of tenants that ask for nothing. */
  due(defaults: TopicSettings): Promise<readonly DueTopic[]>;
  /** It exists, with these settings: its stream can be published. Its identity is the first that was told. */
  markReady(name: string, settings: TopicSettings, identity?: string): Promise<void>;
  /** It could not be made yet: its tenant is told why. Does nothing for one that is there. */
  reportUnready(name: string, reason: string): Promise<void>;
  /** It is gone. */
  markRemoved(name: string): Promise<void>;

  /** The topics that were made and not removed, one for each stream. */
  current(): Promise<readonly CurrentTopic[]>;
  /**
   * The brokers do not know it. Its stream is held from now on; true once this was so for long enough that it is no
   * passing state of brokers that start.
   */
  markMissing(name: string): Promise<boolean>;
  /** It is there, after all. */
  markFound(name: string): Promise<void>;
  /**
   * Gives the topic's stream another one, in which its numbers go on: what it held is lost, and readers that had not
   * read it are told. False, and nothing, when that was done already.
   */
  replace(name: string, reason: string): Promise<boolean>;
}

/** Which positions of a topic exist: from `start` to before `end`. */
export interface TopicExtent {
  readonly start: bigint;
  readonly end: bigint;
  /** Of the topic that has this name now: one that was deleted and made anew has another. Undefined: there is none. */
  readonly identity: string | undefined;
}

/** What is, at the brokers. All calls throw StatusError ServiceUnavailable when it cannot be known. */
export interface TopicAdmin {
  /** Makes it be, with these settings, and resolves with its identity when it can be written to. */
  ensure(name: string, settings: TopicSettings): Promise<string | undefined>;
  /** Resolves when it is gone. */
  remove(name: string): Promise<void>;
  /** Those that the brokers know; for the others, `missing`. Left out: those that have no leader to ask now. */
  extents(names: readonly string[]): Promise<ReadonlyMap<string, TopicExtent | 'missing'>>;
}

/** The states of an event dispatcher, as data. */
import type { DatSubtype } from '../../errors/index.js';

/** DAT_EVD_FLAGS: the streams that feed an EVD (bit set). */
export const EvdFlags = {
  SOFTWARE: 0x001,
  CR: 0x010,
  DTO: 0x020,
  CONNECTION: 0x040,
  RMR_BIND: 0x080,
  ASYNC: 0x100,
  /** All but software. */
  DEFAULT: 0x1f0,
} as const;

/** Streams whose events are completions, so that the EVD has a completion queue. */
export const COMPLETION_STREAMS = EvdFlags.DTO | EvdFlags.RMR_BIND;
export const ALL_STREAMS = EvdFlags.DEFAULT | EvdFlags.SOFTWARE;

/** DAT_EVD_STATE bits, as `evd.query().state` has them. */
export const EvdState = {
  ENABLED: 0x01,
  DISABLED: 0x02,
  WAITABLE: 0x04,
  UNWAITABLE: 0x08,
  CONFIG_NOTIFY: 0x10,
  CONFIG_SOLICITED: 0x20,
  CONFIG_THRESHOLD: 0x30,
} as const;

/** Two independent substates of DAT_EVD_STATE, and the calls that change them. */
export type EvdWaiting = 'WAITABLE' | 'UNWAITABLE';

export const EVD_SUBSTATES = {
  /** Initial. New events notify the CNO, or start upcalls (which DAT makes by way of a CNO). */
  ENABLED: { bit: EvdState.ENABLED, enable: 'ENABLED', disable: 'DISABLED' },
  /**
   * Neither notifies nor starts upcalls. Waiters, iterations, `events$` and `dequeue` still work.
   */
  DISABLED: { bit: EvdState.DISABLED, enable: 'ENABLED', disable: 'DISABLED' },
  /** Initial. */
  WAITABLE: {
    bit: EvdState.WAITABLE,
    setUnwaitable: 'UNWAITABLE',
    clearUnwaitable: 'WAITABLE',
  },
  /** `wait` and iterations get DAT_INVALID_STATE_EVD_UNWAITABLE, pending ones too. */
  UNWAITABLE: {
    bit: EvdState.UNWAITABLE,
    setUnwaitable: 'UNWAITABLE',
    clearUnwaitable: 'WAITABLE',
  },
} as const;

/**
 * Streams that one EVD may take together (provider attribute evd_stream_merging_supported), in
 * DAT's order: software, connection requests, DTO, connection, RMR bind, asynchronous errors. All
 * combinations are allowed: an EVD keeps events of all streams in one order.
 */
export const EVD_STREAM_MERGING: readonly (readonly boolean[])[] = Array.from({ length: 6 }, () =>
  Array.from({ length: 6 }, () => true),
);

/** How completions of the EVD's streams notify; set by the endpoints that feed it. */
export type EvdConfiguration = 'NOTIFY' | 'SOLICITED' | 'THRESHOLD';

interface ConfigurationRow {
  readonly state: number;
  /** May `wait` ask for more than one event? */
  readonly threshold: boolean;
  /** Is the completion queue armed for solicited completions only? */
  readonly solicited: boolean;
  readonly subtype: DatSubtype;
}

export const EVD_CONFIGURATIONS: Readonly<Record<EvdConfiguration, ConfigurationRow>> = {
  NOTIFY: {
    state: EvdState.CONFIG_NOTIFY,
    threshold: false,
    solicited: false,
    subtype: 'DAT_INVALID_STATE_EVD_CONFIG_NOTIFY',
  },
  SOLICITED: {
    state: EvdState.CONFIG_SOLICITED,
    threshold: false,
    solicited: true,
    subtype: 'DAT_INVALID_STATE_EVD_CONFIG_SOLICITED',
  },
  THRESHOLD: {
    state: EvdState.CONFIG_THRESHOLD,
    threshold: true,
    solicited: false,
    subtype: 'DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD',
  },
};

/** Kinds of consumers that take events off an EVD by themselves; at most one at a time. */
export type EventConsumerKind = 'none' | 'waiter' | 'iterator' | 'subscription' | 'upcall';

interface TakerRow {
  /** Name in messages. */
  readonly text: string;
  readonly subtype?: DatSubtype;
  /** Does `disable()` stop it? */
  readonly needsEnabled: boolean;
  /** Does `setUnwaitable()` end it? */
  readonly needsWaitable: boolean;
  /** Kinds that may replace this one as the EVD's consumer. */
  readonly admits: readonly EventConsumerKind[];
}

export const EVENT_CONSUMER_KINDS: Readonly<Record<EventConsumerKind, TakerRow>> = {
  none: {
    text: 'nobody',
    needsEnabled: false,
    needsWaitable: false,
    admits: ['waiter', 'iterator', 'subscription', 'upcall'],
  },
  waiter: {
    text: 'a waiter',
    subtype: 'DAT_INVALID_STATE_EVD_WAITER',
    needsEnabled: false,
    needsWaitable: true,
    admits: [],
  },
  iterator: {
    text: 'an iterator',
    subtype: 'DAT_INVALID_STATE_EVD_WAITER',
    needsEnabled: false,
    needsWaitable: true,
    admits: [],
  },
  subscription: {
    text: 'a subscriber of events$',
    needsEnabled: false,
    needsWaitable: false,
    admits: [],
  },
  upcall: {
    text: 'an enabled upcall',
    needsEnabled: true,
    needsWaitable: false,
    admits: ['upcall'],
  },
};

/** Upcall policies as data (kDAPL's DAT_UPCALL_POLICY, as reviewed in August 2005). */

/** Policies by name; ONE is DAT 2.0's SINGLE_INSTANCE. */
export const UpcallPolicy = {
  DISABLE: 'DISABLE',
  ONE: 'ONE',
  SINGLE_INSTANCE: 'ONE',
  NOTIFY: 'NOTIFY',
  MANY: 'MANY',
  TEARDOWN: 'TEARDOWN',
} as const;
export type UpcallPolicy = (typeof UpcallPolicy)[keyof typeof UpcallPolicy];

interface PolicyRow {
  /** True if upcalls may start. */
  readonly enabled: boolean;
  /** True if the upcall gets the event; else the consumer dequeues. */
  readonly carriesEvent: boolean;
  /** Upcalls in progress at a time; undefined where the consumer sets it. */
  readonly limit: number | undefined;
}

export const UPCALL_POLICIES: Readonly<Record<UpcallPolicy, PolicyRow>> = {
  DISABLE: { enabled: false, carriesEvent: true, limit: 0 },
  ONE: { enabled: true, carriesEvent: true, limit: 1 },
  NOTIFY: { enabled: true, carriesEvent: false, limit: 1 },
  MANY: { enabled: true, carriesEvent: true, limit: undefined },
  TEARDOWN: { enabled: false, carriesEvent: true, limit: 0 },
};

/** Overlapping upcalls under MANY when the consumer names no limit. */
export const DEFAULT_UPCALL_LIMIT = 16;

/** Keep the present handler: only the policy changes (DAT_UPCALL_SAME). */
export const UPCALL_SAME: unique symbol = Symbol.for('dapl:UPCALL_SAME');

/**
 * Handling of events that are queued when upcalls are enabled. `deliver` (INVOC_ANY): they fire the
 * upcall. `keep` (INVOC_NEW): they stay until the next new event, whose upcall carries the oldest.
 * `refuse`: the call fails with DAT_INVALID_STATE and changes nothing.
 */
export type PendingChoice = 'deliver' | 'keep' | 'refuse';

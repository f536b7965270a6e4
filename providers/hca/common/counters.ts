/** Counters of a device: every packet that is dropped is counted by its reason. */

/** Why a packet went no further. The names are the keys of `HcaCounters.drops`. */
export const DROP_REASONS = [
  'tooShort',
  'unknownOpcode',
  'badTransportVersion',
  'truncated',
  'misaligned',
  'unknownQpn',
  'wrongTransport',
  'wrongState',
  'wrongDirection',
  'wrongSource',
  'wrongPort',
  'badPkey',
  'badQkey',
  'badLength',
  'refusedAccess',
  'noReceive',
  'gsiOverflow',
  'bufferTooSmall',
  'sequenceGap',
  'duplicate',
  'replayUnknown',
  'ghostAck',
  'staleResponse',
  'missingResponse',
  'reservedSyndrome',
  'backlogged',
] as const;

export type DropReason = (typeof DROP_REASONS)[number];

export class HcaCounters {
  readonly drops: Record<DropReason, number> = Object.fromEntries(
    DROP_REASONS.map((reason) => [reason, 0]),
  ) as Record<DropReason, number>;
  acksSent = 0;
  naksSent = 0;
  rnrNaksSent = 0;
  acksReceived = 0;
  naksReceived = 0;
  rnrNaksReceived = 0;
  timeouts = 0;
  /** Times that a requester went back to its oldest unacknowledged packet. */
  retries = 0;
  /** Packets repeated after silence, before an ACK timeout. */
  earlyRepeats = 0;
  duplicateRequests = 0;
  /** READs and atomics of peers that were executed here; a repeated one is none of them. */
  readsAnswered = 0;
  atomicsAnswered = 0;
  localErrors = 0;
  completions = 0;
  /** Turns of the event loop in which the device received, sent and completed nothing. */
  emptyTurns = 0;
  cqOverruns = 0;
  /** Packets for other processes of a shared device: handed over, and lost. */
  misdelivered = 0;
  misdeliveredDrops = 0;

  /** Reads all counters, by name. Drops are named after their reason, such as `dropUnknownQpn`. */
  read(): Record<string, number> {
    const { drops, ...counts } = this;
    const dropped = DROP_REASONS.map((reason) => [dropName(reason), drops[reason]] as const);
    return { ...counts, ...Object.fromEntries(dropped) };
  }

  /** Dropped packets, whatever the reason. */
  get dropped(): number {
    return DROP_REASONS.reduce((sum, reason) => sum + this.drops[reason], 0);
  }
}

function dropName(reason: DropReason): string {
  return `drop${reason.charAt(0).toUpperCase()}${reason.slice(1)}`;
}

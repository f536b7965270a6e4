/** Counters of RMPP transfers, over all agents of a module. */
export interface RmppCounters {
  segmentsSent: number;
  segmentsResent: number;
  /** DATA segments that were handled, and those of them that were repeated or invalid. */
  segmentsReceived: number;
  segmentsDropped: number;
  transfersReceived: number;
  /** Transfers to us that ended by STOP, by our ABORT, or after 40 seconds. */
  transfersRefused: number;
  /** Violations that were answered with ABORT. */
  violations: number;
}

export function newRmppCounters(): RmppCounters {
  return {
    segmentsSent: 0,
    segmentsResent: 0,
    segmentsReceived: 0,
    segmentsDropped: 0,
    transfersReceived: 0,
    transfersRefused: 0,
    violations: 0,
  };
}

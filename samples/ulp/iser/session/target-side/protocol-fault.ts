/** Violations by an initiator in full feature phase, and their effect on its session. */
import { REJECT_REASON, type WireError } from '../../wire/index.js';

export type RejectReason = (typeof REJECT_REASON)[keyof typeof REJECT_REASON];

/**
 * A fault that is answered by a Reject with this reason. At error recovery level 0 most end the
 * session.
 */
export class ProtocolFault extends Error {
  override readonly name = 'ProtocolFault';

  constructor(
    readonly reason: RejectReason,
    message: string,
    readonly session: 'ends' | 'goes on',
  ) {
    super(message);
  }
}

/** Answers to bytes that are no PDU, by fault. */
const FAULTS = {
  length: { reason: REJECT_REASON.PROTOCOL_ERROR, session: 'ends' },
  opcode: { reason: REJECT_REASON.COMMAND_NOT_SUPPORTED, session: 'goes on' },
  field: { reason: REJECT_REASON.INVALID_PDU_FIELD, session: 'ends' },
  text: { reason: REJECT_REASON.PROTOCOL_ERROR, session: 'ends' },
} as const;

export function faultOf(error: WireError): ProtocolFault {
  const { reason, session } = FAULTS[error.fault];
  return new ProtocolFault(reason, error.message, session);
}

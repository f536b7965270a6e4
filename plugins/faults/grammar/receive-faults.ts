/** Faults of receives: messages that are treated as if no receive were posted. */
import { integer } from '../../../core/spi/checks/index.js';
import type { FaultGrammar, FaultRule } from './fault-script.js';

/** A message that needs a receive: a SEND, or a WRITE with immediate data. */
export interface ReceiveView {
  /** QP number of the receiver. */
  readonly qpn: number;
}

export interface ReceiveMatch {
  /** 0 to 2^24 - 1, of the receiver. */
  readonly qpn?: number;
}

/** Acts as if no receive were posted: RC answers with an RNR NAK, UC drops the message. */
export interface ReceiveAction {
  readonly type: 'not-ready';
}

export type ReceiveFaultRule = FaultRule<ReceiveMatch, ReceiveAction>;

const MAX_QPN = 0xffffff;

export const RECEIVE_FAULTS: FaultGrammar<ReceiveView, ReceiveMatch, ReceiveAction> = {
  match: { qpn: { kind: integer(0, MAX_QPN), agrees: (message, qpn) => message.qpn === qpn } },
  actions: { 'not-ready': {} },
};

/** Faults of send requests: those that fail without being sent, and their status. */
import { integer, type Kind, kindOf } from '../../../core/spi/checks/index.js';
import { WcStatus, WrOpcode } from '../../../core/spi/index.js';
import type { FaultGrammar, FaultRule } from './fault-script.js';

/** A send request that its queue pair is about to start. */
export interface SendView {
  readonly qpn: number;
  readonly opcode: number;
}

export interface SendMatch {
  /** 0 to 2^24 - 1; 1 is QP1, which sends MADs. */
  readonly qpn?: number;
  /** A value of `WrOpcode`. */
  readonly opcode?: WrOpcode;
}

/** Completes the request with this error status, and puts its queue pair into error. */
export interface SendAction {
  readonly type: 'fail';
  readonly status: WcStatus;
}

export type SendFaultRule = FaultRule<SendMatch, SendAction>;

const MAX_QPN = 0xffffff;
const OPCODE: Kind = kindOf('a number of WrOpcode', (opcode) =>
  Object.values<unknown>(WrOpcode).includes(opcode),
);
const FAILURE: Kind = kindOf(
  'a number of WcStatus that is no success',
  (status) => status !== WcStatus.SUCCESS && Object.values<unknown>(WcStatus).includes(status),
);

export const SEND_FAULTS: FaultGrammar<SendView, SendMatch, SendAction> = {
  match: {
    qpn: { kind: integer(0, MAX_QPN), agrees: (send, qpn) => send.qpn === qpn },
    opcode: { kind: OPCODE, agrees: (send, opcode) => send.opcode === opcode },
  },
  actions: { fail: { status: FAILURE } },
};

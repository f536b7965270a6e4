/** Completions of a device, as objects. */
import { type CompletionQueue, CQE } from '../../core/spi/index.js';

export interface Completion {
  readonly status: number;
  readonly opcode: number;
  readonly flags: number;
  readonly qpn: number;
  readonly cookie: number;
  readonly byteLength: number;
  readonly immediate: number;
  readonly sourceQpn: number;
  readonly vendorError: number;
  readonly wqeIndex: number;
  readonly srqn: number;
  readonly context: number;
}

/** Reads and takes out all completions. */
export function drain(cq: CompletionQueue): Completion[] {
  const count = cq.poll();
  const { ring } = cq;
  const completions: Completion[] = [];
  for (let i = 0; i < count; i++) {
    const at = ring.wordOf(ring.consumer);
    const word = (offset: number): number => ring.words[at + offset]!;
    completions.push({
      status: word(CQE.CONTROL) & 0xff,
      opcode: (word(CQE.CONTROL) >>> 8) & 0xff,
      flags: (word(CQE.CONTROL) >>> 16) & 0xff,
      qpn: word(CQE.QPN),
      cookie: word(CQE.COOKIE_LO),
      byteLength: word(CQE.BYTE_LENGTH),
      immediate: word(CQE.IMMEDIATE_OR_INVALIDATE),
      sourceQpn: word(CQE.SOURCE_QPN),
      vendorError: word(CQE.VENDOR_ERROR),
      wqeIndex: word(CQE.WQE_INDEX),
      srqn: word(CQE.SRQN),
      context: word(CQE.QP_CONTEXT),
    });
    ring.consumer += 1;
  }
  return completions;
}

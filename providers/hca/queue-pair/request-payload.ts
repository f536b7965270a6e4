/** The payload of send requests, read where core wrote it: segments, or inline in the entry. */
import { SQE, WrFlags } from '../../../core/spi/index.js';
import { MEMORY_CHECK } from '../memory/memory.js';
import type { SoftQueuePair } from './queue-pair.js';
import { SegmentCursor } from '../memory/segment-cursor.js';

export class RequestPayload {
  /** There from the first message of several packets on. */
  private cursor: SegmentCursor | undefined = undefined;
  /** The request that `cursor` walks. */
  private cursorIndex = -1;

  constructor(protected readonly qp: SoftQueuePair) {}

  /** Starts anew: the cursor's request may have another content now. */
  begin(): void {
    this.cursorIndex = -1;
  }

  /**
   * Adds `length` bytes from byte `offset` of the request's message to the open packet; false when
   * they may not be read.
   * @param whole these bytes are the whole message
   */
  add(index: number, offset: number, length: number, whole: boolean): boolean {
    if (length === 0) return true;
    const { hca, sendRing, domain } = this.qp;
    const at = sendRing.wordOf(index);
    const control = sendRing.words[at + SQE.CONTROL]!;
    if ((control & (WrFlags.INLINE << 8)) !== 0) {
      const start = this.qp.inlinePayloadOffset(index);
      hca.tx.addSegment(this.qp.inlinePayloadRegion(), start + offset, length);
      return true;
    }
    const segments = (control >>> 16) & 0xff;
    if (whole) {
      hca.cursor.start(sendRing.words, at + SQE.SEGMENTS, segments);
      return hca.cursor.gather(hca.memory, domain, length, hca.tx) === MEMORY_CHECK.OK;
    }
    const cursor = (this.cursor ??= new SegmentCursor());
    if (offset === 0 || this.cursorIndex !== index) {
      cursor.start(sendRing.words, at + SQE.SEGMENTS, segments);
      this.cursorIndex = index;
    }
    cursor.seek(offset);
    return cursor.gather(hca.memory, domain, length, hca.tx) === MEMORY_CHECK.OK;
  }
}

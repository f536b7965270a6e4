/** One received message. */
import type { DtoCompletionEvent } from '../evd/index.js';
import { DatError } from '../errors/index.js';
import { showAs, Symbolic } from '../spi/checks/index.js';

/** The buffer of a message. */
export interface ReceiveBuffer {
  /** The whole buffer, however long the message. */
  readonly bytes: Uint8Array;
  /** Posts it again. @throws DatError as `ep.postRecv` */
  release(): void;
}

/** A message that `receives` emits. */
export class Received implements Disposable {
  static {
    showAs(this, 'Received', ({ event, content }) => {
      return { ep: event.ep, bytes: content?.length ?? new Symbolic('released') };
    });
  }

  private content: Uint8Array | undefined;

  /** @internal @param buffer undefined when the bytes are a copy */
  constructor(
    /** Its completion: immediate data, an invalidated context. */
    readonly event: DtoCompletionEvent,
    bytes: Uint8Array,
    private buffer: ReceiveBuffer | undefined,
  ) {
    this.content = bytes;
  }

  /**
   * The message: a copy, or the registered memory itself if it is lent.
   * @throws DatError DAT_INVALID_STATE when the buffer was lent and has been released: it may hold
   * another message by now
   */
  get bytes(): Uint8Array {
    if (this.content !== undefined) return this.content;
    throw new DatError('DAT_INVALID_STATE', {
      operation: 'received.bytes',
      message: 'the message has been released',
      hint: 'take what you need before release()',
    });
  }

  /**
   * Posts the buffer again for the next message; once, however often it is called. For a copy it
   * does nothing: the buffer is posted already.
   * @throws DatError as `ep.postRecv`; the buffer can be released again then
   */
  release(): void {
    const { buffer } = this;
    if (buffer === undefined) return;
    buffer.release();
    this.buffer = undefined;
    this.content = undefined;
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

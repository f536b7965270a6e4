/** One end of a connection that lives for one message; checks its own story. */
import {
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type DtoCompletionEvent,
  type Ep,
  type Ia,
  type Lmr,
  type Pz,
} from '../../core/index.js';
import { SeededRandom } from '../../providers/mock/index.js';
import { Violation } from './trace.js';

const MESSAGE_BYTES = 1024;
const HEADER_BYTES = 8;

export class CycleSide {
  readonly ep: Ep;
  /** Ends the connection when its message has come; otherwise the peer does when it is sent. */
  disconnectsWhenReceived = false;
  private readonly pz: Pz;
  private readonly lmr: Lmr;
  private established = false;
  private ended = false;
  private message: { readonly lengthBytes: number; readonly seed: number } | undefined;

  /** @param onEnd the connection is over: whether it ever was there; all of it has been freed */
  constructor(
    ia: Ia,
    private readonly onViolation: (error: unknown) => void,
    private readonly onEnd: (established: boolean) => void,
  ) {
    this.pz = ia.createPz();
    this.lmr = ia.allocate(MESSAGE_BYTES + HEADER_BYTES, { pz: this.pz });
    this.ep = ia.createEndpoint({ pz: this.pz });
    this.ep.postRecv(this.lmr.segment(), 1);
    this.ep.connection$.subscribe((event) => this.guard(() => this.onConnection(event)));
    this.ep.completions$.subscribe((event) => this.guard(() => this.onCompletion(event)));
  }

  /** Sends that many bytes, which a seed decides, as soon as the connection is there. */
  sends(lengthBytes: number, seed: number): void {
    this.message = { lengthBytes, seed };
  }

  private onConnection({ number }: DatEvent): void {
    if (number === DatEventNumber.ESTABLISHED) {
      if (this.established || this.ended) throw new Violation('ESTABLISHED twice, or at the end');
      this.established = true;
      this.send();
      return;
    }
    if (this.ended) throw new Violation(`a second end: event ${number}`);
    this.ended = true;
    // Flushed receives come first; the private event dispatchers go with the endpoint.
    this.ep.free();
    this.lmr.free();
    this.pz.free();
    this.onEnd(this.established);
  }

  private send(): void {
    if (!this.message) return;
    const { lengthBytes, seed } = this.message;
    const view = new DataView(this.lmr.bytes.buffer, this.lmr.bytes.byteOffset);
    view.setUint32(0, lengthBytes);
    view.setUint32(4, seed);
    fill(this.lmr.bytes.subarray(HEADER_BYTES, HEADER_BYTES + lengthBytes), seed);
    this.ep.postSend(this.lmr.segment(0, HEADER_BYTES + lengthBytes), 2);
  }

  private onCompletion(event: DtoCompletionEvent | DatEvent): void {
    if (event.type !== 'dto' || event.status !== DatDtoStatus.SUCCESS) return;
    if (event.cookie === 1) this.check(event.transferredLength);
    const mayEnd = event.cookie === 2 || this.disconnectsWhenReceived;
    if (mayEnd && this.ep.state === 'CONNECTED') this.ep.disconnect('graceful');
  }

  private check(lengthBytes: number): void {
    const { bytes } = this.lmr;
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    if (view.getUint32(0) + HEADER_BYTES !== lengthBytes) throw new Violation('wrong length');
    const actual = bytes.slice(HEADER_BYTES, lengthBytes);
    const expected = new Uint8Array(actual.length);
    fill(expected, view.getUint32(4));
    if (Buffer.compare(actual, expected) !== 0) throw new Violation('wrong bytes');
  }

  private guard(what: () => void): void {
    try {
      what();
    } catch (error) {
      this.onViolation(error);
    }
  }
}

function fill(bytes: Uint8Array, seed: number): void {
  const random = new SeededRandom(seed);
  for (let i = 0; i < bytes.length; i += 4) {
    const word = random.u32();
    for (let j = i; j < Math.min(i + 4, bytes.length); j++) bytes[j] = word >>> (8 * (j - i));
  }
}

/** A port that peers connect to. */
import { type Cr, type Psp } from 'dapl';
import {
  type ByteStreamListener,
  type StreamAddress,
  StreamError,
  type StreamListenOptions,
} from '../../socket/index.js';
import { type ConnectionData, decodeConnectionData } from '../wire/index.js';
import { Adapter } from './adapter.js';
import type { RsocketPlan } from './options.js';
import { RsocketStream } from './stream.js';

/** As of any byte-stream protocol, and the streams are those of this one. */
export interface RsocketListenOptions extends StreamListenOptions {
  onStream(stream: RsocketStream): void;
}

export class RsocketListener implements ByteStreamListener {
  readonly local: StreamAddress;
  private readonly psp: Psp;
  private readonly young = new Set<RsocketStream>();
  private closed: Promise<void> | undefined = undefined;

  /** @throws DatError as `ia.createPsp`; the adapter has been left then */
  constructor(
    private readonly adapter: Adapter,
    private readonly plan: RsocketPlan,
    private readonly options: RsocketListenOptions,
  ) {
    const { ia } = adapter;
    const { port, address } = options;
    try {
      this.psp = port === 0 ? ia.createPspAny() : ia.createPsp({ connQual: port });
    } catch (error) {
      adapter.leave();
      throw error;
    }
    this.local = { address: address ?? ia.query().ia.iaAddress, port: this.psp.connQual };
    this.psp.requests$.subscribe({
      next: ({ cr }) => this.meet(cr),
      complete: () => this.onGone(),
    });
  }

  close(): Promise<void> {
    this.closed ??= this.end();
    return this.closed;
  }

  ref(): void {
    this.psp.ref();
  }

  unref(): void {
    this.psp.unref();
  }

  private async end(): Promise<void> {
    if (!this.psp.isFreed) this.psp.free();
    for (const stream of [...this.young]) stream.giveUp();
    this.young.clear();
    this.adapter.leave();
  }

  /** The service point has ended by itself: its adapter has been closed. */
  private onGone(): void {
    if (this.closed !== undefined) return;
    void this.close();
    const detail = 'its adapter has been closed';
    this.options.onError(new StreamError('ECONNABORTED', { syscall: 'accept', detail }));
  }

  private meet(cr: Cr): void {
    const { remoteAddress, remotePort } = cr.query();
    const remote = { address: remoteAddress, port: remotePort };
    const peer = dataOf(cr);
    const { options } = this;
    if (
      peer === undefined ||
      this.young.size >= options.backlog ||
      !options.admit(remote, this.local)
    ) {
      cr.reject();
      return;
    }
    const { adapter, plan } = this;
    let stream: RsocketStream;
    const opening = {
      onOpen: (): void => {
        this.young.delete(stream);
        options.onStream(stream);
      },
      // The peer has gone meanwhile: that is its own affair.
      onFailure: (): void => void this.young.delete(stream),
    };
    try {
      stream = new RsocketStream(Adapter.join(adapter.ia), plan, remote, this.local.port, opening);
    } catch {
      // No memory, or no endpoint: others are served.
      adapter.leave();
      cr.reject();
      return;
    }
    this.young.add(stream);
    stream.answer(cr, peer);
    // Where that failed, the request is still there.
    if (!cr.isFreed) cr.reject();
  }
}

/** What the peer speaks of itself; undefined where that is no rsocket, or another version. */
function dataOf(cr: Cr): ConnectionData | undefined {
  try {
    return decodeConnectionData(cr.privateData);
  } catch {
    return undefined;
  }
}

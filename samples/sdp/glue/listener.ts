/** A port that peers connect to. */
import type { Cr, Psp } from 'dapl';
import {
  type ByteStreamListener,
  type StreamAddress,
  StreamError,
  type StreamListenOptions,
} from '../../socket/index.js';
import { agreedReceiveBytes, isVersionKnown, refusalOf } from '../session/index.js';
import { type Hello, parseHello } from '../wire/index.js';
import { Adapter } from './adapter.js';
import { helloAckOf, refusalBytes } from './hellos.js';
import { limitsOf, type SdpPlan } from './options.js';
import { listenOn } from './ports.js';
import { SdpStream } from './stream.js';

/** As of any byte-stream protocol, and the streams are those of this one. */
export interface SdpListenOptions extends StreamListenOptions {
  onStream(stream: SdpStream): void;
}

export class SdpListener implements ByteStreamListener {
  readonly local: StreamAddress;
  private readonly psp: Psp;
  private readonly young = new Set<SdpStream>();
  private closed: Promise<void> | undefined = undefined;

  /** @throws DatError as `ia.createPsp`; the adapter has been left then */
  constructor(
    private readonly adapter: Adapter,
    private readonly plan: SdpPlan,
    private readonly options: SdpListenOptions,
  ) {
    const { ia } = adapter;
    const { address } = options;
    let port: number;
    try {
      [this.psp, port] = listenOn(ia, options.port);
    } catch (error) {
      adapter.leave();
      throw error;
    }
    this.local = { address: address ?? ia.query().ia.iaAddress, port };
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
    const { privateData, remoteAddress } = cr;
    const hello = helloIn(privateData);
    const { plan, options, local } = this;
    if (hello === undefined || !isWelcome(hello)) {
      cr.reject({ privateData: refusalBytes(plan, hello?.isIpv6 ?? false) });
      return;
    }
    const remote = { address: remoteAddress, port: hello.localPort };
    if (this.young.size >= options.backlog || !options.admit(remote, local)) {
      cr.reject();
      return;
    }
    const bytes = agreedReceiveBytes(limitsOf(plan), hello.desiredRemoteBytes);
    let stream: SdpStream;
    const opening = {
      onOpen: (): void => {
        this.young.delete(stream);
        options.onStream(stream);
      },
      // The peer has gone meanwhile: that is its own affair.
      onFailure: (): void => void this.young.delete(stream),
    };
    const adapter = Adapter.join(this.adapter.ia);
    try {
      stream = new SdpStream(adapter, plan, local, remote, bytes, opening);
    } catch {
      // No memory, or no endpoint: others are served.
      adapter.leave();
      cr.reject();
      return;
    }
    this.young.add(stream);
    stream.answer(cr, privateData, hello, helloAckOf(plan, hello.isIpv6, bytes));
  }
}

/** What the peer speaks of itself; undefined where that is no Hello. */
function helloIn(privateData: Uint8Array): Hello | undefined {
  try {
    return parseHello(privateData);
  } catch {
    return undefined;
  }
}

function isWelcome({ version, bufs, localBytes }: Hello): boolean {
  return isVersionKnown(version) && refusalOf(bufs, localBytes) === undefined;
}

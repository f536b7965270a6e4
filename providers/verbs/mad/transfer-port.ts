/**
 * Datagrams of RMPP transfers, through a file whose agent is not asked to know about them: the
 * kernel passes on what is marked as RMPP, and matches nothing.
 */
import { type Gid, type Scheduler, type SpiError, WcStatus } from '../../../core/spi/index.js';
import type { MadPort, PortAddress, WorkRequest } from '../../../plugins/mad/provider.js';
import { GONE, sendFailure } from './errors.js';
import type { UmadFile } from './file.js';
import { emitPacket } from './packet.js';
import type { GidPlaces } from './services.js';

/** Beyond these nothing is sent that may as well be dropped. */
const ROOM = 128;

export class TransferPort implements MadPort {
  isOpen = true;
  /** There are no handles to keep: each packet says where it goes. */
  readonly addresses = {
    acquire: (gid: Gid, localGidIndex: number): PortAddress => {
      this.places.hardwareGidIndex(localGidIndex);
      return { gid: gid.slice(), localGidIndex, handle: 0 };
    },
    release: (): void => undefined,
  };
  private readonly posted = new Map<number, WorkRequest>();
  /** Why the last datagram to a GID was refused. */
  private readonly failures = new Map<string, SpiError>();
  private nextToken = 0;

  /** @param onGone a write has told that the device is gone */
  constructor(
    private readonly file: () => UmadFile,
    private readonly places: GidPlaces,
    private readonly scheduler: Scheduler,
    private readonly onGone: () => void,
  ) {}

  get hasRoom(): boolean {
    return this.isOpen && this.posted.size < ROOM;
  }

  post(request: WorkRequest): void {
    const { address, data } = request;
    if (!this.isOpen) {
      this.scheduler.defer(() => request.onComplete(WcStatus.WR_FLUSH_ERR));
      return;
    }
    const token = this.newToken();
    const gidIndex = this.places.hardwareGidIndex(address.localGidIndex);
    const packet = emitPacket({ gid: address.gid, qpn: request.qpn }, gidIndex, 0, 0, data);
    this.posted.set(token, request);
    this.file().write(token, packet);
  }

  /** Everything is with the file at once. */
  withdraw(): boolean {
    return false;
  }

  onWritten(token: number, errno: number): void {
    const request = this.posted.get(token);
    if (!request) return;
    this.posted.delete(token);
    const { gid } = request.address;
    if (errno === 0) {
      if (this.failures.size > 0) this.failures.delete(keyOf(gid));
      request.onComplete(WcStatus.SUCCESS);
    } else if (GONE.has(errno)) {
      this.onGone();
      request.onComplete(WcStatus.WR_FLUSH_ERR);
    } else {
      this.failures.set(keyOf(gid), sendFailure(errno, gid));
      request.onComplete(WcStatus.GENERAL_ERR);
    }
  }

  failureOf(gid: Gid): SpiError | undefined {
    return this.failures.get(keyOf(gid));
  }

  private newToken(): number {
    do {
      this.nextToken = (this.nextToken + 1) >>> 0;
    } while (this.posted.has(this.nextToken));
    return this.nextToken;
  }
}

function keyOf(gid: Gid): string {
  return gid.join('.');
}

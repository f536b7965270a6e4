/**
 * Service id resolution of a device: the requests that it sends, and those that it answers
 * (IBTA 12.11). Id, service and sender identify a repeated request.
 */
import {
  type CmResolution,
  type CmResolveOptions,
  DEFAULT_PKEY,
  type Device,
  type Gid,
  gidEquals,
} from '../../../core/spi/index.js';
import type { Admission } from '../admission/admission.js';
import type { CmCounters } from '../common/cm-counters.js';
import { cmaContentsOf } from '../messages/cma-contents.js';
import type { CmPath, ConnectionServices } from '../connection/connection.js';
import type { Listeners } from '../admission/listeners.js';
import type { Origin } from '../common/transaction-id.js';
import { HalfOpenLimit } from '../admission/half-open-limit.js';
import { SidrInquiry, type SidrInquiryInit, sidrRepOf } from './inquiry.js';
import { type SidrIdentity, sidrReqOf, SidrResolution } from './resolution.js';
import { type CmSidrRep, type CmSidrReq, SIDR_STATUS } from '../wire/sidr.js';

export interface SidrInit {
  readonly services: ConnectionServices;
  readonly device: Device;
  readonly listeners: Listeners;
  readonly counters: CmCounters;
  readonly admission: Admission;
  /** The most requests that wait for their consumers, and the most remembered answers. */
  readonly limit: number;
}

export class Sidr {
  private readonly resolutions = new Map<number, SidrResolution>();
  /** In the order of arrival. */
  private readonly inquiries = new Map<string, SidrInquiry>();
  private readonly unansweredLimit: HalfOpenLimit;
  private unanswered = 0;

  constructor(private readonly init: SidrInit) {
    this.unansweredLimit = new HalfOpenLimit(init.limit, init.counters, init.services.clock);
  }

  get isEmpty(): boolean {
    return this.resolutions.size + this.inquiries.size === 0;
  }

  hasRequestId(requestId: number): boolean {
    return this.resolutions.has(requestId);
  }

  /** @throws SpiError('EINVAL') */
  resolve(options: CmResolveOptions, identity: SidrIdentity, path: CmPath): CmResolution {
    const { services, counters } = this.init;
    const req = sidrReqOf(options, identity);
    const asking = { ...services, onUnexpected: () => void counters.unexpected++ };
    const resolution = new SidrResolution(asking, options, req, path, () => {
      this.resolutions.delete(req.requestId);
    });
    this.resolutions.set(req.requestId, resolution);
    resolution.dispatch('resolve');
    return resolution;
  }

  onRep(rep: CmSidrRep, { source }: Origin): void {
    const { counters, admission, services } = this.init;
    const resolution = this.resolutions.get(rep.requestId);
    if (!resolution) counters.unknownConnection++;
    else if (!resolution.receive(rep, source.gid)) counters.wrongSource++;
    else admission.payBack(source.gid, 1, services.clock.now());
  }

  onReq(req: CmSidrReq, origin: Origin): void {
    const { services, listeners, device } = this.init;
    const repeated = this.inquiries.get(keyOf(req, origin));
    if (repeated) {
      repeated.dispatch('SIDR_REQ');
      return;
    }
    const localGid = device.gids[origin.source.localGidIndex];
    const contents = localGid && cmaContentsOf(req.serviceId, req.privateData, localGid);
    const listener = listeners.find(req.serviceId);
    const onResolve = listener?.options.onResolve;
    if (!contents || (req.partitionKey & 0x7fff) !== (DEFAULT_PKEY & 0x7fff)) {
      this.refuse(req, origin, SIDR_STATUS.REJECTED_BY_PROVIDER);
    } else if (!listener || !onResolve) {
      this.refuse(req, origin, SIDR_STATUS.SERVICE_ID_NOT_SUPPORTED);
    } else if (this.unansweredLimit.takeFor(listener, origin.source.gid)) {
      const { gid } = origin.source;
      const onSettled = (): void => {
        this.unansweredLimit.giveBack(gid);
        listener.backlog.giveBack(gid);
      };
      const inquiry = this.admit(req, origin, { contents, localGid, onSettled });
      services.defer(() => {
        if (inquiry.waitsForConsumer) onResolve(inquiry);
      });
    }
  }

  /** Takes an ICMP hint that a peer is unreachable. It concerns requests to it, not answers. */
  onHint(gid: Gid, what: string): void {
    for (const resolution of [...this.resolutions.values()]) {
      if (gidEquals(resolution.remoteGid, gid)) resolution.onHint(what);
    }
  }

  /** Answers pending requests and forgets everything. */
  close(): void {
    for (const item of this.all()) item.dispatch('close');
  }

  private all(): (SidrResolution | SidrInquiry)[] {
    return [...this.resolutions.values(), ...this.inquiries.values()];
  }

  private admit(
    req: CmSidrReq,
    origin: Origin,
    parts: Pick<SidrInquiryInit, 'contents' | 'localGid' | 'onSettled'>,
  ): SidrInquiry {
    const { gid, localGidIndex } = origin.source;
    const key = keyOf(req, origin);
    this.unanswered++;
    const inquiry = new SidrInquiry(this.init.services, {
      req,
      contents: parts.contents,
      localGid: parts.localGid,
      transactionId: origin.transactionId,
      path: { gid: gid.slice(), localGidIndex },
      onSettled: () => {
        this.unanswered--;
        parts.onSettled();
        this.limitAnswers();
      },
      onIdle: () => void this.inquiries.delete(key),
    });
    this.inquiries.set(key, inquiry);
    return inquiry;
  }

  /** Drops the oldest answers above the limit. */
  private limitAnswers(): void {
    const { limit } = this.init;
    if (this.inquiries.size - this.unanswered <= limit) return;
    for (const inquiry of this.inquiries.values()) {
      if (inquiry.waitsForConsumer) continue;
      inquiry.dispatch('expired');
      return;
    }
  }

  private refuse(req: CmSidrReq, { source, transactionId }: Origin, status: number): void {
    this.init.counters.requestsRejected++;
    const body = sidrRepOf(req, { status });
    this.init.services.send({ name: 'SIDR_REP', body }, transactionId, source);
  }
}

function keyOf({ requestId, serviceId }: CmSidrReq, { source }: Origin): string {
  return `${requestId}:${serviceId}:${source.gid.join('.')}`;
}

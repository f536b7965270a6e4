/**
 * A device with a tap. Queue pairs, completion queues and shared receive queues that it creates are
 * wrapped, and the tap sees the entries that cross the contract: work requests at their doorbell,
 * completions when `poll` shows them.
 */
import type {
  AddressHandle,
  CompletionQueue,
  CompletionQueueInit,
  Device,
  QueuePair,
  QueuePairAttributes,
  QueuePairInit,
  SharedReceiveQueue,
  SharedReceiveQueueInit,
  XrcDomainHandle,
} from '../device/device.js';
import type { AsyncEventType } from '../wire/ib.js';
import type { Ring, SharedReceiveRing } from '../layout/ring.js';
import { over, type Over } from './over.js';

/** Free-running indices: entries `from` to `to` - 1. */
type Entries = (from: number, to: number) => void;

export interface QueuePairTap {
  /** Entries of its send ring, handed over when this returns. */
  sends?: Entries;
  receives?: Entries;
  /** `modify` has succeeded. */
  modified?(attributes: QueuePairAttributes): void;
  event?(event: AsyncEventType): void;
  destroyed?(): void;
}

export interface CompletionQueueTap {
  /** New completions, each reported once. */
  completions?(ring: Ring, from: number, to: number): void;
  armed?(): void;
  notified?(): void;
  event?(event: AsyncEventType): void;
  destroyed?(): void;
}

export interface SharedReceiveQueueTap {
  /** Slots by the entries of `ring.submissions`. */
  receives?(ring: SharedReceiveRing, from: number, to: number): void;
  destroyed?(): void;
}

export interface DeviceTap {
  /** Wraps every call of the device and of its objects. */
  call<T>(what: string, run: () => T): T;
  /** Wraps every handler that the device runs. */
  handler(what: string, run: () => void): void;
  /** The objects are the device's own, also in `init`. */
  queuePair(qp: QueuePair, init: QueuePairInit): QueuePairTap;
  completionQueue(cq: CompletionQueue, init: CompletionQueueInit): CompletionQueueTap;
  sharedReceiveQueue(srq: SharedReceiveQueue, init: SharedReceiveQueueInit): SharedReceiveQueueTap;
}

/** A tap that does nothing, as a base for others. */
export const SILENT_TAP: DeviceTap = {
  call: (_what, run) => run(),
  handler: (_what, run) => {
    run();
  },
  queuePair: () => ({}),
  completionQueue: () => ({}),
  sharedReceiveQueue: () => ({}),
};

/** Overrides for the members of a device, for `decorate`. */
export function tapDevice(device: Device, tap: DeviceTap): Over<Device> {
  return new Wrapping(device, tap).members();
}

class Wrapping {
  /** The device's own objects, by the wrappers that its caller got. */
  private readonly own = new WeakMap<object, object>();

  constructor(
    private readonly device: Device,
    private readonly tap: DeviceTap,
  ) {}

  members(): Over<Device> {
    const { device, tap } = this;
    const members: Over<Device> = {
      createProtectionDomain: () =>
        tap.call('createProtectionDomain', () => device.createProtectionDomain()),
      createCompletionQueue: (init) => this.completionQueue(init),
      createQueuePair: (init) => this.queuePair(init),
      createAddressHandle: (pd, vector): AddressHandle =>
        tap.call('createAddressHandle', () => device.createAddressHandle(pd, vector)),
      setEventHandler: (handler) =>
        device.setEventHandler((event) => tap.handler('device event', () => handler(event))),
      setReportHandler: (handler) =>
        device.setReportHandler((report) => tap.handler('network report', () => handler(report))),
      progress: () => tap.call('progress', () => device.progress()),
      close: () => tap.call('close', () => device.close()),
    };
    // A device without one of these members cannot do it.
    if (device.createSharedReceiveQueue) {
      members.createSharedReceiveQueue = (init) => this.sharedReceiveQueue(init);
    }
    if (device.createMemoryWindow) {
      members.createMemoryWindow = (pd, type) =>
        tap.call('createMemoryWindow', () => device.createMemoryWindow!(pd, type));
    }
    if (device.createXrcDomain) {
      members.createXrcDomain = (sharing): XrcDomainHandle =>
        tap.call('createXrcDomain', () => device.createXrcDomain!(sharing));
    }
    if (device.openXrcDomain) {
      members.openXrcDomain = (sharing): Promise<XrcDomainHandle> =>
        tap.call('openXrcDomain', () => device.openXrcDomain!(sharing));
    }
    return members;
  }

  /** The device's own object. */
  private beneath<T extends object | undefined>(given: T): T {
    return ((given && this.own.get(given)) ?? given) as T;
  }

  private wrapped<T extends object>(inner: T, members: Over<T>): T {
    const outer = over(inner, members);
    this.own.set(outer, inner);
    return outer;
  }

  private completionQueue(init: CompletionQueueInit): CompletionQueue {
    const { tap } = this;
    // Handlers run after the call that creates the queue has returned.
    let of: CompletionQueueTap = {};
    const cq = tap.call('createCompletionQueue', () =>
      this.device.createCompletionQueue({
        ...init,
        onNotify: () =>
          tap.handler('completion notification', () => {
            of.notified?.();
            init.onNotify();
          }),
        onEvent: (event) =>
          tap.handler('completion queue event', () => {
            of.event?.(event);
            init.onEvent(event);
          }),
      }),
    );
    of = tap.completionQueue(cq, init);
    let seen = cq.ring.consumer;
    return this.wrapped<CompletionQueue>(cq, {
      poll: () => {
        const readable = tap.call('poll', () => cq.poll());
        const { ring } = cq;
        const end = (ring.consumer + readable) >>> 0;
        if (((end - seen) | 0) > 0) {
          const from = seen;
          seen = end;
          of.completions?.(ring, from, end);
        }
        return readable;
      },
      arm: (solicitedOnly) => {
        tap.call('arm', () => cq.arm(solicitedOnly));
        of.armed?.();
      },
      setPolling: (mode) => tap.call('setPolling', () => cq.setPolling(mode)),
      resize: (minEntries) => {
        const told = (seen - cq.ring.consumer) >>> 0;
        tap.call('resize', () => cq.resize(minEntries));
        seen = (cq.ring.consumer + told) >>> 0;
      },
      destroy: () => {
        tap.call('destroy', () => cq.destroy());
        of.destroyed?.();
      },
    });
  }

  private queuePair(init: QueuePairInit): QueuePair {
    const { tap, device } = this;
    const { srq } = init;
    const own: QueuePairInit = {
      ...init,
      sendCq: this.beneath(init.sendCq),
      receiveCq: this.beneath(init.receiveCq),
      ...(srq && { srq: this.beneath(srq) }),
    };
    const qp = tap.call('createQueuePair', () => device.createQueuePair(own));
    const of = tap.queuePair(qp, own);
    // The CM's own handler comes first and passes events on: each event is reported once.
    let above = qp.eventHandler;
    qp.eventHandler = (event) =>
      tap.handler('queue pair event', () => {
        of.event?.(event);
        above(event);
      });
    let sent = qp.sendRing.producer;
    let received = qp.receiveRing?.producer ?? 0;
    return this.wrapped<QueuePair>(qp, {
      get eventHandler() {
        return above;
      },
      set eventHandler(handler) {
        above = handler;
      },
      ringSendDoorbell: () => {
        const { producer } = qp.sendRing;
        if (producer !== sent) of.sends?.(sent, producer);
        sent = producer;
        tap.call('ringSendDoorbell', () => qp.ringSendDoorbell());
      },
      ringReceiveDoorbell: () => {
        const producer = qp.receiveRing?.producer ?? 0;
        if (producer !== received) of.receives?.(received, producer);
        received = producer;
        tap.call('ringReceiveDoorbell', () => qp.ringReceiveDoorbell());
      },
      modify: (attributes) => {
        tap.call('modify', () => qp.modify(attributes));
        of.modified?.(attributes);
      },
      destroy: () => {
        tap.call('destroy', () => qp.destroy());
        of.destroyed?.();
      },
    });
  }

  private sharedReceiveQueue(init: SharedReceiveQueueInit): SharedReceiveQueue {
    const { tap } = this;
    const { xrc } = init;
    const srq = tap.call('createSharedReceiveQueue', () =>
      this.device.createSharedReceiveQueue!({
        ...init,
        ...(xrc && { xrc: { domain: xrc.domain, cq: this.beneath(xrc.cq) } }),
        onEvent: (event) => tap.handler('shared receive queue event', () => init.onEvent(event)),
      }),
    );
    const of = tap.sharedReceiveQueue(srq, init);
    let submitted = srq.ring.submissions.producer;
    return this.wrapped<SharedReceiveQueue>(srq, {
      ringDoorbell: () => {
        const { ring } = srq;
        const { producer } = ring.submissions;
        if (((producer - submitted) | 0) > 0) of.receives?.(ring, submitted, producer);
        submitted = producer;
        try {
          tap.call('ringDoorbell', () => srq.ringDoorbell());
        } catch (error) {
          // The refused slots are offered again, or others in their place.
          submitted = srq.ring.submissions.consumer;
          throw error;
        }
      },
      setLimit: (limit) => tap.call('setLimit', () => srq.setLimit(limit)),
      resize: (maxWr) => tap.call('resize', () => srq.resize(maxWr)),
      destroy: () => {
        tap.call('destroy', () => srq.destroy());
        of.destroyed?.();
      },
    });
  }
}

/** XRC as several processes have it: each with a context of the fake device of its own. */
import {
  Access,
  type AsyncEventType,
  type CompletionQueue,
  type MemoryRegion,
  type ProtectionDomain,
  QpState,
  type QueuePair,
  type SharedReceiveQueue,
  SQE,
  type XrcDomain,
  type XrcOpenMode,
  type XrcTargetOwner,
} from '../../core/spi/index.js';
import { silentLogger } from '../../core/spi/plugin/logger.js';
import { Xrc } from '../../plugins/xrc/index.js';
import { VerbsDevice } from '../../providers/verbs/device.js';
import { addonOverFake } from './pair.js';
import { addSend, type Completion, drain, type Send, writeReceive } from './work.js';

const { LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = Access;
const MEMORY_BYTES = 4096;

/** A device of the fake, as one process has it open: with a module, and what a consumer needs. */
export class Process {
  readonly device: VerbsDevice;
  readonly module: Xrc;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly memory = new Uint8Array(MEMORY_BYTES);
  readonly region: MemoryRegion;
  readonly events: string[] = [];
  domain!: XrcDomain;

  constructor(name = 'fake0') {
    this.device = new VerbsDevice({ addon: addonOverFake(), name, logger: silentLogger });
    this.module = new Xrc({ device: this.device, logger: silentLogger });
    this.pd = this.device.createProtectionDomain();
    this.cq = this.device.createCompletionQueue({
      minEntries: 16,
      onNotify: () => undefined,
      onEvent: () => undefined,
    });
    this.region = this.pd.registerMemory(this.memory, LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE);
  }

  open(key?: string, mode: XrcOpenMode = 'create'): XrcDomain {
    return (this.domain = this.module.openDomain(this, key, mode) as XrcDomain);
  }

  srq(): SharedReceiveQueue {
    const { pd, cq } = this;
    return this.domain.createSharedReceiveQueue({
      pd,
      cq,
      maxWr: 8,
      maxSge: 1,
      onEvent: () => undefined,
    });
  }

  initiator(): QueuePair {
    return this.domain.createInitiator({
      pd: this.pd,
      sendCq: this.cq,
      maxSendWr: 8,
      maxSendSge: 1,
      maxInlineBytes: 64,
      context: 7,
      onEvent: () => undefined,
    });
  }

  hear(qpn: () => number): (event: AsyncEventType) => void {
    return (event) => this.events.push(`${qpn()}:${event}`);
  }

  target(from: QueuePair, owner: XrcTargetOwner = 'consumer'): number {
    const [gid = new Uint8Array(16)] = this.device.gids;
    const qpn: number = this.domain.createTarget({
      attributes: {
        accessFlags: REMOTE_READ | REMOTE_WRITE,
        pkeyIndex: 0,
        portNumber: 1,
        addressVector: { gid, localGidIndex: 0 },
        pathMtuBytes: 1024,
        destinationQpn: from.qpn,
        receivePsn: 0,
        maxDestRdAtomic: 4,
        minRnrTimer: 1,
      },
      owner,
      onEvent: this.hear(() => qpn),
    });
    return qpn;
  }

  /** Brings an initiator to a target, without a connection manager. */
  attach(qp: QueuePair, targetQpn: number): void {
    const [gid = new Uint8Array(16)] = this.device.gids;
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    qp.modify({
      state: QpState.RTR,
      addressVector: { gid, localGidIndex: 0 },
      pathMtuBytes: 1024,
      destinationQpn: targetQpn,
      receivePsn: 0,
    });
    qp.modify({
      state: QpState.RTS,
      sendPsn: 0,
      timeout: 14,
      retryCount: 7,
      rnrRetryCount: 7,
      maxRdAtomic: 4,
    });
  }

  receive(srq: SharedReceiveQueue, slot: number): void {
    const { iova: address, lkey } = this.region;
    const { slots, submissions } = srq.ring;
    writeReceive(slots, slot, [{ address: address + BigInt(slot * 256), length: 256, lkey }]);
    submissions.words[submissions.wordOf(submissions.producer)] = slot;
    submissions.producer += 1;
    srq.ringDoorbell();
  }

  send(qp: QueuePair, srqn: number, opcode: number, more: Omit<Send, 'opcode'>): void {
    const index = addSend(qp.sendRing, { ...more, opcode });
    qp.sendRing.words[qp.sendRing.wordOf(index) + SQE.XRC_SRQN] = srqn;
    qp.ringSendDoorbell();
  }

  poll(): Completion[] {
    return drain(this.cq);
  }
}

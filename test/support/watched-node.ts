import {
  Access,
  type CompletionQueue,
  gidFromIp,
  QpType,
  type QueuePair,
  silentLogger,
} from '../../core/spi/index.js';
import { monotonicClock } from '../../providers/host/index.js';
import type { HcaNode } from '../../providers/kit/hca-node.js';
import { softroceNode } from '../../providers/softroce/instance.js';
import { connect, type HcaPair, type Memory, Side } from './hca-pair.js';
import { joinPorts } from './memory-port.js';
import { WatchedPort } from './watched-port.js';

export interface WatchedNodeOptions {
  readonly memoryBytes: number;
  /** Room for receives; default 16. */
  readonly maxReceives?: number;
  /** Default 1024. */
  readonly pathMtuBytes?: number;
  /** Code of the ACK timeout, which is of real time; 0 is none. */
  readonly timeout?: number;
}

/** A softroce node on a watched port, connected to a peer that is pumped by hand. */
export class WatchedNode {
  readonly port = new WatchedPort(gidFromIp('10.0.0.1'));
  readonly peer = new Side('10.0.0.2', monotonicClock as never, 3, {});
  readonly node: HcaNode;
  readonly memory: Memory;
  readonly cq: CompletionQueue;
  readonly qp: QueuePair;
  readonly peerQp: QueuePair;
  onNotify = (): void => undefined;

  constructor(options: WatchedNodeOptions) {
    const { memoryBytes, maxReceives = 16, pathMtuBytes = 1024, timeout } = options;
    const { port, peer } = this;
    joinPorts(port, peer.port);
    this.node = softroceNode({ name: 'n', port, logger: silentLogger, parameters: {} });
    const { device } = this.node;
    const pd = device.createProtectionDomain();
    const base = 0x10000n;
    const access = Access.LOCAL_WRITE | Access.REMOTE_READ;
    const region = pd.registerMemory(new Uint8Array(memoryBytes), access, base);
    this.memory = { base, region };
    const onEvent = (): void => undefined;
    const onNotify = (): void => this.onNotify();
    this.cq = device.createCompletionQueue({ minEntries: 128, onNotify, onEvent });
    const sizes = { maxSendWr: 16, maxReceiveWr: maxReceives, maxSendSge: 1, maxReceiveSge: 1 };
    const queues = { pd, sendCq: this.cq, receiveCq: this.cq, maxInlineBytes: 0 };
    const type = QpType.RC;
    this.qp = device.createQueuePair({ ...queues, ...sizes, type, context: 1, onEvent });
    this.peerQp = peer.createQp();
    const pair = { a: { port }, b: peer } as unknown as HcaPair;
    connect(
      pair,
      this.qp,
      this.peerQp,
      { ...(timeout !== undefined && { timeout }) },
      pathMtuBytes,
    );
  }
}

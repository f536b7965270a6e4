/**
 * Deliberate bugs that an adversary would find, put into an HCA before anything is made of it: each
 * is the absence of one check. The oracles must notice each of them.
 */
import { Access, QpType } from '../../core/spi/index.js';
import { MEMORY_CHECK, type MemoryTable } from '../../providers/hca/memory/memory.js';
import type { SoftQueuePair } from '../../providers/hca/queue-pair/queue-pair.js';
import { RcQueuePair } from '../../providers/hca/rc/queue-pair.js';
import type { ReceivedPacket } from '../../providers/hca/common/received-packet.js';
import type { SoftSharedReceiveQueue } from '../../providers/hca/srq/shared-receive-queue.js';
import { UcQueuePair } from '../../providers/hca/uc/queue-pair.js';
import { UdQueuePair } from '../../providers/hca/ud/queue-pair.js';
import { dethQkey } from '../../providers/hca/wire/extended-headers.js';
import { OPERATION } from '../../core/spi/wire/opcode.js';
import { OPERATION_OF } from '../../core/spi/wire/packet-layout.js';
import { psnDiff } from '../../providers/hca/wire/psn.js';
import type { MockNode } from '../../providers/mock/index.js';
import { repeatCompletion } from '../sim/plants.js';

export type AdversaryPlant = (node: MockNode) => void;
type CheckRemote = MemoryTable['checkRemote'];

export const ADVERSARY_PLANTS: Readonly<Record<string, AdversaryPlant>> = {
  /** The range of a WRITE is checked where it begins; its later packets go on from there. */
  'later-packets-unchecked': (node) =>
    wrapCheck(node, (check, [qp, domain, key, lo, hi, length, access]) => {
      if (access !== Access.REMOTE_WRITE) return check(qp, domain, key, lo, hi, length, access);
      return check(qp, domain, key, lo, hi, Math.min(length, 1), access);
    }),
  /** One byte more than there is. */
  'length-off-by-one': (node) =>
    wrapCheck(node, (check, [qp, domain, key, lo, hi, length, access]) => {
      const verdict = check(qp, domain, key, lo, hi, length, access);
      if (verdict !== MEMORY_CHECK.BOUNDS || length < 2) return verdict;
      return check(qp, domain, key, lo, hi, length - 1, access);
    }),
  /** A key opens memory to queue pairs of every protection domain. */
  'any-domain': (node) => {
    const { memory } = node.device.hca;
    wrapCheck(node, (check, [qp, domain, key, ...rest]) =>
      check(qp, memory.findRegion(key)?.domain ?? domain, key, ...rest),
    );
  },
  /** A region is open to peers whatever rights it was registered with. */
  'rights-ignored': (node) =>
    wrapCheck(node, (check, [qp, domain, key, lo, hi, length]) =>
      check(qp, domain, key, lo, hi, length, 0),
    ),
  /** A window is said to be invalidated, and goes on to open memory. */
  'live-window': (node) => {
    const { windows } = node.device.hca.memory;
    windows.invalidate = (_binder, rkey) => windows.find(rkey) !== undefined;
  },
  /** A connection believes packets from every address. */
  'any-source': (node) =>
    everyQueuePair(node, (qp) => {
      if (!(qp instanceof RcQueuePair || qp instanceof UcQueuePair)) return;
      const receive = qp.receive.bind(qp);
      qp.receive = (rx) => {
        believe(qp, rx);
        receive(rx);
      };
    }),
  /** A READ is answered whatever its PSN. */
  'read-out-of-sequence': (node) =>
    everyQueuePair(node, (qp) => {
      if (!(qp instanceof RcQueuePair)) return;
      const { responder } = qp;
      const receive = responder.receive.bind(responder);
      responder.receive = (rx) => {
        const isRead = OPERATION_OF[rx.opcode] === OPERATION.readRequest;
        if (isRead && psnDiff(rx.psn, responder.ePsn) > 0) responder.ePsn = rx.psn;
        receive(rx);
      };
    }),
  /** A datagram is taken whatever its Q_Key. */
  'any-qkey': (node) =>
    everyQueuePair(node, (qp) => {
      if (!(qp instanceof UdQueuePair)) return;
      const receive = qp.receive.bind(qp);
      qp.receive = (rx) => {
        qp['qkey'] = dethQkey(rx.view, rx.offset + 12);
        receive(rx);
      };
    }),
  /** An XRC message reaches every queue of the adapter, of whichever domain. */
  'any-xrc-domain': (node) =>
    everyQueuePair(node, (qp) => {
      if (!(qp instanceof RcQueuePair) || qp.namedReceives === undefined) return;
      qp.namedReceives['reaches'] = (srq: SoftSharedReceiveQueue) =>
        srq.completionQueue !== undefined;
    }),
  /** The CM takes a message of any address for one of the spared peer's. */
  'cm-any-source': (node) =>
    everyQueuePair(node, (qp) => {
      if (qp.type !== QpType.GSI) return;
      const receive = qp.receive.bind(qp);
      qp.receive = (rx) => {
        if ((rx.source3 & 0xff) === 66) rx.source3 = (rx.source3 & ~0xff) | 3;
        receive(rx);
      };
    }),
  /** A completion comes twice. */
  'double-completion': ({ device }) => {
    const create = device.createCompletionQueue.bind(device);
    device.createCompletionQueue = (init) => {
      const cq = create(init);
      repeatCompletion(cq, 50, 2);
      return cq;
    };
  },
};

function wrapCheck(
  node: MockNode,
  plant: (check: CheckRemote, given: Parameters<CheckRemote>) => number,
): void {
  const { memory } = node.device.hca;
  const check = memory.checkRemote.bind(memory);
  memory.checkRemote = (...given) => plant(check, given);
}

function everyQueuePair(node: MockNode, spoil: (qp: SoftQueuePair) => void): void {
  const { queuePairs } = node.device.hca;
  // QP1 is there already.
  for (const qp of queuePairs) spoil(qp);
  const insert = queuePairs.insert.bind(queuePairs);
  queuePairs.insert = (qp) => {
    spoil(qp);
    insert(qp);
  };
}

function believe(qp: RcQueuePair | UcQueuePair, rx: ReceivedPacket): void {
  const [source0, source1, source2, source3] = qp.peerPath['peer'];
  Object.assign(rx, { source0, source1, source2, source3 });
}

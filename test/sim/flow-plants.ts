/** Deliberate bugs of UC and XRC queue pairs: see plants.ts. */
import type { ReceivedPacket } from '../../providers/hca/common/received-packet.js';
import { UcQueuePair } from '../../providers/hca/uc/queue-pair.js';
import type { Hca } from '../../providers/hca/hca.js';
import { RcQueuePair } from '../../providers/hca/rc/queue-pair.js';
import type { SimNode } from './sim-node.js';
import type { Plant } from './plants.js';

/** Says whether a packet so far ahead of the expected one (behind: negative) is taken as due. */
type Tolerance = (ahead: number) => boolean;

export const FLOW_PLANTS: Readonly<Record<string, Plant>> = {
  /** A UC message is taken again when its packets come again. */
  'uc-repeated': ({ nodes }) => ignorePsns(nodes, (ahead) => ahead < 0),
  /** A UC message goes on where packets of it are missing. */
  'uc-partial': ({ nodes }) => ignorePsns(nodes, (ahead) => ahead > 0),
  /** An XRC message goes to another queue of the domain than it names. */
  'xrc-misdelivered': ({ nodes }) => {
    for (const node of nodes) misdeliver(node, 10);
  },
  /** A message takes the slot of an XRC queue that another one has taken. */
  'xrc-slot-twice': ({ nodes }) => {
    for (const { xrc } of nodes) {
      const srq = xrc?.receivers[0]?.shared.srq;
      const take = srq?.take.bind(srq);
      let calls = 0;
      if (srq && take) {
        srq.take = () => {
          const slot = take();
          if (slot >= 0 && ++calls % 10 === 0) srq.putBack(slot);
          return slot;
        };
      }
    }
  },
  /** An XRC message reaches memory of any protection domain. */
  'xrc-any-domain': ({ nodes }) => {
    for (const { node } of nodes) forgetDomains(node.device.hca);
  },
};

function ignorePsns(nodes: readonly SimNode[], tolerates: Tolerance): void {
  for (const { node } of nodes) {
    const { hca } = node.device;
    const { queuePairs } = hca;
    const insert = queuePairs.insert.bind(queuePairs);
    queuePairs.insert = (qp) => {
      if (qp instanceof UcQueuePair) tolerate(qp, tolerates);
      insert(qp);
    };
  }
}

function tolerate(qp: UcQueuePair, tolerates: Tolerance): void {
  const responder = qp['responder'];
  const receive = responder.receive.bind(responder);
  responder.receive = (rx: ReceivedPacket) => {
    const ahead = ((rx.psn - responder['ePsn']) << 8) >> 8;
    if (tolerates(ahead)) responder['ePsn'] = rx.psn;
    receive(rx);
  };
}

function misdeliver({ node, xrc }: SimNode, nth: number): void {
  const { queuePairs } = node.device.hca;
  const queues = xrc?.receivers.map(({ shared }) => shared.srq) ?? [];
  const insert = queuePairs.insert.bind(queuePairs);
  let calls = 0;
  queuePairs.insert = (qp) => {
    const named = qp instanceof RcQueuePair ? qp.namedReceives : undefined;
    if (named !== undefined) {
      const select = named.select.bind(named);
      named.select = (rx: ReceivedPacket) => {
        const fault = select(rx);
        const other = queues.find((srq) => srq !== qp.receives);
        if (fault === undefined && other && ++calls % nth === 0) qp.receives = other;
        return fault;
      };
    }
    insert(qp);
  };
}

function forgetDomains({ memory }: Hca): void {
  const check = memory.checkRemote.bind(memory);
  memory.checkRemote = (qp, domain, key, ...rest) =>
    check(qp, memory.findRegion(key)?.domain ?? domain, key, ...rest);
}

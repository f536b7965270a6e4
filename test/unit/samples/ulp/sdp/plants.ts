/** Bugs to be found: what a careless implementation might do. */
import type { Outgoing } from '../../../../../samples/ulp/sdp/session/index.js';
import type { Body, Sequence } from '../../../../../samples/ulp/sdp/wire/index.js';
import type { PairHost } from './pair-host.js';

interface Plant {
  /** The second model sees it on the wire, whatever becomes of the bytes. */
  readonly isAgainstTheRules: boolean;
  readonly plant: (host: PairHost) => void;
}

/** Changes what is sent. */
function posting(host: PairHost, change: (message: Outgoing) => Partial<Outgoing>): void {
  const post = host.post.bind(host);
  host.post = (message) => post({ ...message, ...change(message) });
}

function numbering(host: PairHost, change: (sequence: Sequence) => Partial<Sequence>): void {
  posting(host, ({ sequence }) => ({ sequence: { ...sequence, ...change(sequence) } }));
}

function saying(host: PairHost, change: (body: Body) => Body): void {
  posting(host, ({ body }) => ({ body: change(body) }));
}

export const PLANTS: Readonly<Record<string, Plant>> = {
  'credits are not looked at': {
    isAgainstTheRules: true,
    plant: ({ session: { credits } }) => Object.assign(credits, { allows: () => true }),
  },
  'data takes one of the two credits that are kept': {
    isAgainstTheRules: true,
    plant: ({ session: { credits } }) =>
      Object.assign(credits, { allows: () => credits.available >= 2 }),
  },
  'a message acknowledges what has not come': {
    isAgainstTheRules: true,
    plant: (host) => numbering(host, ({ mseqAck }) => ({ mseqAck: mseqAck + 1 })),
  },
  'a message tells of a receive that is not posted': {
    isAgainstTheRules: true,
    plant: (host) => numbering(host, ({ bufs }) => ({ bufs: bufs + 1 })),
  },
  'a number is left out': {
    isAgainstTheRules: true,
    plant: (host) => numbering(host, ({ mseq }) => ({ mseq: mseq > 5 ? mseq + 1 : mseq })),
  },
  'RdmaRdCompl of a byte less': {
    isAgainstTheRules: true,
    plant: (host) =>
      saying(host, (body) =>
        body.mid === 'RDMA_RD_COMPL' ? { ...body, bytes: body.bytes - 1 } : body,
      ),
  },
  'RdmaWrCompl of a byte less': {
    isAgainstTheRules: true,
    plant: (host) =>
      saying(host, (body) =>
        body.mid === 'RDMA_WR_COMPL' ? { ...body, bytes: body.bytes - 1 } : body,
      ),
  },
  'a read goes on where it should end': {
    isAgainstTheRules: true,
    plant: (host) => {
      const read = host.rdmaRead.bind(host);
      host.rdmaRead = (area, length, { rkey, address }) =>
        read(area, length, { rkey, address: address + 1n });
    },
  },
  'a mode is left by the side that may not': {
    isAgainstTheRules: true,
    plant: (host) =>
      saying(host, (body) =>
        body.mid === 'MODE_CHANGE' ? { ...body, mode: 'BUFFERED', half: 'RECV' } : body,
      ),
  },
  'SendSm in place of RdmaRdCompl': {
    isAgainstTheRules: true,
    plant: (host) =>
      saying(host, (body) => (body.mid === 'RDMA_RD_COMPL' ? { mid: 'SEND_SM' } : body)),
  },
  'urgent bytes are told as others': {
    isAgainstTheRules: false,
    plant: (host) => numbering(host, ({ flags }) => ({ flags: flags & ~1 })),
  },
  'a key stays open': {
    isAgainstTheRules: false,
    plant: (host) => {
      const open = host.open.bind(host);
      host.open = (bytes) => ({ ...open(bytes), release: () => undefined });
    },
  },
  'bytes are copied from the wrong place': {
    isAgainstTheRules: false,
    plant: (host) =>
      posting(host, ({ payload }) => ({
        payload: payload.map((piece) => piece.slice().reverse()),
      })),
  },
};

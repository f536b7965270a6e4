import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
  CONNECTION_CAUSES,
  type ConnectionCause,
  type ConnectionEvent,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  openIa,
} from '../../../core/index.js';
import { WcStatus } from '../../../core/spi/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { connected, drain, texts } from '../../support/fake-endpoints.js';

const CLIENT = '192.0.2.1';
const SERVER = '192.0.2.2';

interface Side {
  readonly ia: Ia;
  readonly ep: Ep;
  readonly evd: Evd;
  readonly lmr: Lmr;
}

interface Scene {
  readonly fabric: Fabric;
  readonly client: Side;
  readonly server: Side;
}

/** `EVENT` or `EVENT CAUSE` of each side, at the end. */
type Ends = readonly [client: string, server: string];

interface Break {
  readonly run: (scene: Scene) => void | Promise<void>;
  readonly ends: Ends;
}

function remote({ address, rmrContext }: Lmr): { address: bigint; rmrContext: number } {
  assert.ok(rmrContext !== undefined);
  return { address, rmrContext };
}

const BREAKS: Readonly<Record<string, Break>> = {
  'no receive is posted': {
    run: ({ client }) => void client.ep.postSend([], 1),
    ends: ['BROKEN RECEIVER_NOT_READY', 'DISCONNECTED NO_RECEIVE_POSTED'],
  },
  'no receive is posted for a write with immediate data': {
    run: ({ client, server }) =>
      void client.ep.postRdmaWriteWithImmediate([], 1, remote(server.lmr), 7),
    ends: ['BROKEN RECEIVER_NOT_READY', 'DISCONNECTED NO_RECEIVE_POSTED'],
  },
  'one of two messages finds a receive': {
    run: ({ client, server }) => {
      server.ep.postRecv(server.lmr.segment(), 1);
      client.ep.postSend([], 1);
      client.ep.postSend([], 2);
    },
    ends: ['BROKEN RECEIVER_NOT_READY', 'DISCONNECTED NO_RECEIVE_POSTED'],
  },
  'the receive is too small': {
    run: ({ client, server }) => {
      server.ep.postRecv(server.lmr.segment(0, 8), 1);
      client.ep.postSend(client.lmr.segment(0, 9), 1);
    },
    ends: ['BROKEN REMOTE_LENGTH', 'BROKEN LOCAL_LENGTH'],
  },
  'the key is wrong': {
    run: ({ client, server }) => {
      const { address, rmrContext } = remote(server.lmr);
      const wrong = { address, rmrContext: (rmrContext ^ 0x100) >>> 0 };
      client.ep.postRdmaWrite(client.lmr.segment(0, 8), 1, wrong);
    },
    ends: ['BROKEN REMOTE_ACCESS', 'BROKEN LOCAL_ACCESS'],
  },
  'a READ of what may only be written': {
    run: ({ client, server }) => {
      const lmr = server.ia.allocate(8, {
        pz: server.lmr.pz,
        privileges: MemPrivileges.REMOTE_WRITE | MemPrivileges.LOCAL_WRITE,
      });
      client.ep.postRdmaRead(client.lmr.segment(0, 8), 1, remote(lmr));
    },
    ends: ['BROKEN REMOTE_ACCESS', 'BROKEN LOCAL_ACCESS'],
  },
  'the peer is gone': {
    run: ({ fabric, client }) => {
      fabric.partition([CLIENT], [SERVER]);
      client.ep.postSend([], 1);
    },
    ends: ['BROKEN PEER_GONE', ''],
  },
  'more receives than the hard watermark': {
    run: ({ server }) => {
      server.ep.setWatermark(Infinity, 1);
      for (const cookie of [1, 2]) server.ep.postRecv([], cookie);
    },
    ends: ['DISCONNECTED', 'BROKEN WATERMARK'],
  },
  'the peer disconnects': {
    run: ({ client }) => client.ep.disconnect(),
    ends: ['DISCONNECTED', 'DISCONNECTED'],
  },
  'a receive comes late, and the peer disconnects then': {
    run: async ({ fabric, client, server }) => {
      client.ep.postSend([], 1);
      await fabric.run({ forUs: 50 });
      server.ep.postRecv([], 1);
      await fabric.run({ forUs: 100_000 });
      client.ep.disconnect();
    },
    ends: ['DISCONNECTED', 'DISCONNECTED'],
  },
};

function side(ia: Ia): Side {
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 64 });
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  const transport = { ackTimeout: 8, retryCount: 1, rnrRetryCount: 2, minRnrTimer: 12 };
  const ep = ia.createEndpoint({ pz, ...evds, attributes: { transport } });
  return { ia, evd, ep, lmr: ia.allocate(64, { pz, privileges: MemPrivileges.ALL }) };
}

function endOf({ evd }: Side): ConnectionEvent | undefined {
  return drain(evd).findLast((event): event is ConnectionEvent => event.type === 'connection');
}

describe('why a connection has ended', () => {
  for (const [what, { run, ends }] of Object.entries(BREAKS)) {
    it(`${what}: both sides are told`, async () => {
      const fabric = new Fabric({ seed: 3, autoRun: false });
      const ias: Ia[] = [];
      for (const address of [CLIENT, SERVER]) ias.push(await openIa(mock({ fabric, address })));
      const [client, server] = ias.map(side);
      assert.ok(client && server);
      server.ia.createPsp({ connQual: 7 }).requests$.subscribe(({ cr }) => cr.accept(server.ep));
      client.ep.connect({ address: SERVER, connQual: 7 });
      await fabric.run({ forUs: 1_000_000 });
      for (const { evd } of [client, server]) assert.deepEqual(texts(drain(evd)), ['ESTABLISHED']);
      for (const { ep } of [client, server]) ep.state$.subscribe();
      await run({ fabric, client, server });
      await fabric.run({ forUs: 5_000_000 });
      const events = [client, server].map(endOf);
      assert.deepEqual(
        events.map((event) =>
          [...(event ? texts([event]) : []), event?.cause ?? ''].join(' ').trim(),
        ),
        ends,
      );
      for (const event of events) {
        if (event?.cause === undefined) continue;
        assert.ok(event.reason?.includes(CONNECTION_CAUSES[event.cause]) ?? false, event.reason);
      }
      fabric.heal();
      const closed = Promise.all(ias.map((ia) => ia.close()));
      await fabric.run({ forUs: 60_000_000 });
      await closed;
    });
  }

  it('every status of a failed request or receive has a cause', async () => {
    const silent: readonly number[] = [WcStatus.SUCCESS, WcStatus.WR_FLUSH_ERR];
    const failures = Object.values(WcStatus).filter((status) => !silent.includes(status));
    const causes = new Set<ConnectionCause>();
    for (const status of failures) {
      for (const complete of ['send', 'receive'] as const) {
        const { ep, evd, device, lmr } = await connected();
        ep.postRecv(lmr.segment(), 1);
        ep.postSend(lmr.segment(), 2);
        if (complete === 'send') device.qp.completeSend(status);
        else device.qp.completeReceive(0, status);
        const broken = drain(evd).at(-1);
        assert.ok(broken?.type === 'connection' && broken.cause !== undefined, String(status));
        causes.add(broken.cause);
      }
    }
    assert.ok(causes.size > 8, [...causes].join(' '));
  });

  it('every cause is in the documentation, in its words', () => {
    const page = readFileSync('docs/evd.md', 'utf8');
    for (const [cause, sentence] of Object.entries(CONNECTION_CAUSES)) {
      assert.ok(page.includes(`\`${cause}\``) && page.includes(sentence), cause);
    }
  });
});

/**
 * Channels at REQ and REP: two devices of one host meet before the consumer hears of the request,
 * and REP says whether they have. Otherwise the connection is what it would be without.
 */
import assert from 'node:assert/strict';
import {
  CHANNEL_MTU_BYTES,
  type CmRequest,
  LOCAL_MTU_BYTES,
  type PeerDevice,
} from '../../../core/spi/index.js';
import { deviceOf, offersOf, PEER_AGREEMENT } from '../../../core/spi/internal/index.js';
import { parseCmMad } from '../../../plugins/cm/wire/message.js';
import { CmHcaPair } from '../../support/cm-hca-pair.js';
import { type Side, type SideOptions } from '../../support/hca-pair.js';
import { ROCE_PORT } from '../../support/memory-port.js';

type Meet = NonNullable<SideOptions['meet']>;

const at = (met: boolean): SideOptions => ({
  meet: (_peer, done) => done(met),
  localMtuBytes: LOCAL_MTU_BYTES,
});
/** BTH and DETH, in front of a MAD. */
const HEADERS = 20;

function mtusOf({ client, server }: CmHcaPair): (number | undefined)[] {
  return [client.qp, server.qp].map((qp) => qp?.query().pathMtuBytes);
}

function connected(pair: CmHcaPair, pathMtuBytes?: number): (number | undefined)[] {
  pair.listen();
  pair.client.connect(pair.server, { ...(pathMtuBytes && { pathMtuBytes }) });
  pair.run(10_000);
  assert.deepEqual([pair.client.types, pair.server.types], [['established'], ['established']]);
  return mtusOf(pair);
}

/** GUIDs of the REQ and REP that leave a side. */
function guidsFrom({ port }: Side): bigint[] {
  const guids: bigint[] = [];
  port.filter = (packet) => {
    const mad = packet.length === HEADERS + 256 ? parseCmMad(packet.slice(HEADERS)) : undefined;
    const { message } = mad ?? {};
    if (message?.name === 'REQ' || message?.name === 'REP') guids.push(message.body.localCaGuid);
    return [packet];
  };
  return guids;
}

describe('CM: devices of one host', () => {
  it('have a channel when they have met, and REP says so', () => {
    const pair = new CmHcaPair(3, at(true), at(true));
    const [req, rep] = [guidsFrom(pair.a), guidsFrom(pair.b)];
    assert.deepEqual(connected(pair), [CHANNEL_MTU_BYTES, CHANNEL_MTU_BYTES]);
    for (const guid of [...req, ...rep]) assert.ok(offersOf(guid) & PEER_AGREEMENT.CHANNEL);
  });

  it('stay on the network when they have not met: REP does not offer it', () => {
    // Whether the active side has a channel, or thinks so, makes no difference.
    for (const active of [true, false]) {
      const pair = new CmHcaPair(3, at(active), at(false));
      const [req, rep] = [guidsFrom(pair.a), guidsFrom(pair.b)];
      assert.deepEqual(connected(pair), [LOCAL_MTU_BYTES, LOCAL_MTU_BYTES]);
      assert.ok(offersOf(req[0]!) & PEER_AGREEMENT.CHANNEL);
      assert.equal(offersOf(rep[0]!) & PEER_AGREEMENT.CHANNEL, 0);
      assert.equal(deviceOf(rep[0]!), deviceOf(pair.b.driver.device.attributes.nodeGuid));
    }
  });

  it('are not asked to meet where one cannot, or shorter packets are asked for', () => {
    let asked = 0;
    const counting: SideOptions = {
      meet: (_peer, done) => {
        asked += 1;
        done(true);
      },
    };
    const foreign = { parameters: { agreements: false } };
    assert.deepEqual(connected(new CmHcaPair(3, {}, counting)), [4096, 4096]);
    assert.deepEqual(connected(new CmHcaPair(3, counting, { meet: undefined! })), [4096, 4096]);
    assert.deepEqual(connected(new CmHcaPair(3, foreign, counting)), [4096, 4096]);
    assert.deepEqual(connected(new CmHcaPair(3, counting, counting), 2048), [2048, 2048]);
    assert.equal(asked, 0);
  });

  it('are told who the peer is; the consumer hears of the request when they have met', () => {
    const waiting: { peer: PeerDevice; done: (met: boolean) => void }[] = [];
    const meet: Meet = (peer, done) => void waiting.push({ peer, done });
    const pair = new CmHcaPair(3, at(true), { ...at(true), meet });
    const requests: CmRequest[] = [];
    pair.listen((request) => {
      requests.push(request);
      pair.server.accept(request);
    });
    pair.client.connect(pair.server);
    // The peer repeats its REQ meanwhile, and is heard once.
    pair.run(6_000_000);
    assert.equal(requests.length, 0);
    assert.equal(waiting.length, 1);
    const { guid, gid, udpPort } = waiting[0]!.peer;
    assert.equal(guid, pair.a.driver.device.attributes.nodeGuid);
    assert.deepEqual([gid, udpPort], [pair.a.port.gids[0], ROCE_PORT]);
    waiting[0]!.done(true);
    pair.run(10_000);
    assert.equal(requests.length, 1);
    assert.deepEqual(mtusOf(pair), [CHANNEL_MTU_BYTES, CHANNEL_MTU_BYTES]);
  });

  it('that meet when the peer has given up, or the CM has closed, are not heard of', async () => {
    for (const how of ['peer', 'close'] as const) {
      const waiting: ((met: boolean) => void)[] = [];
      const meet: Meet = (_peer, done) => void waiting.push(done);
      const pair = new CmHcaPair(3, at(true), { ...at(true), meet });
      let requests = 0;
      pair.listen(() => (requests += 1));
      const connection = pair.client.connect(pair.server);
      pair.run(10_000);
      if (how === 'peer') connection.abandon();
      else await pair.server.close();
      pair.run(10_000);
      waiting[0]!(true);
      pair.run(10_000);
      assert.equal(requests, 0, how);
    }
  });
});

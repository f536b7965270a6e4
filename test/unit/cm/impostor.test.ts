/**
 * A third party that claims the identity of a peer: neither its ids nor its queue pair block it.
 */
import assert from 'node:assert/strict';
import { gidFromIp } from '../../../core/spi/index.js';
import { CmPair, PARAMETERS, text, typesOf } from '../../support/cm-pair.js';

const STRANGER = gidFromIp('10.0.0.77');

describe('CM: an impostor', () => {
  it('cannot take the place of a request by its ids', async () => {
    const pair = new CmPair();
    pair.tamper('REQ', 1, []);
    pair.listen((request) => void pair.accept(request));
    const { events } = pair.connect();
    const [req] = pair.bodies('REQ');
    assert.ok(req);
    const body = { ...req, primaryLocalGid: STRANGER };
    pair.inject(pair.b, { name: 'REQ', body }, STRANGER);
    await pair.world.runFor(600_000);
    assert.equal(pair.requests.length, 2, 'the impostor, then the peer');
    assert.deepEqual(typesOf(events), ['established']);
  });

  it('cannot make a connection of the peer look stale', async () => {
    const pair = new CmPair();
    const qpn = 0x77;
    pair.listen((request) => {
      const qp = pair.b.device.connectableQp();
      Object.defineProperty(qp, 'qpn', { value: qpn });
      pair.accept(request, { qp });
    });
    pair.tamper('REQ', 1, [200]);
    const { events } = pair.connect();
    const [req] = pair.bodies('REQ');
    const [ours] = pair.a.device.gids;
    assert.ok(req && ours);
    const body = {
      ...req,
      localCommId: 99,
      localCaGuid: pair.b.device.attributes.nodeGuid,
      localQpn: qpn,
      primaryLocalGid: STRANGER,
      primaryRemoteGid: ours,
      serviceId: 0x0200_0000_0000_0001n,
    };
    pair.a.cm.listen({
      serviceId: body.serviceId,
      backlog: 4,
      onRequest: (request) => {
        const qp = pair.a.device.connectableQp();
        const onEvent = (): void => undefined;
        request.accept({ ...PARAMETERS, qp, privateData: text(''), onEvent });
      },
    });
    pair.inject(pair.a, { name: 'REQ', body }, STRANGER);
    await pair.world.runFor(100_000);
    assert.deepEqual(typesOf(events), ['established']);
  });
});

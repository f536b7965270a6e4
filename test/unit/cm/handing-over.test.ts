/** A request that one process's CM hands to that of another, which has the queue pair. */
import assert from 'node:assert/strict';
import {
  type CmElsewhere,
  type CmEvent,
  type CmRequest,
  type HandedRequest,
  QpState,
  QpType,
  SpiError,
} from '../../../core/spi/index.js';
import { parseCmMad } from '../../../plugins/cm/wire/message.js';
import { CmPair, PARAMETERS, type Side, text, textOf, typesOf } from '../../support/cm-pair.js';
import { FakeNode } from '../../support/fake-node.js';
import type { FakeQueuePair } from '../../support/fake-queue-pair.js';

/** Node b is asked; the host, another process of the device, answers. */
class Handing {
  readonly pair = new CmPair();
  readonly host: FakeNode;
  readonly handed: HandedRequest[] = [];
  repeats = 0;
  accepted: Side | undefined;
  failure: SpiError | undefined;

  constructor() {
    const { device } = this.pair.b;
    const { nodeGuid } = device.attributes;
    this.host = new FakeNode(this.pair.network, '10.0.0.2', { seed: 33, attributes: { nodeGuid } });
    // Steering by communication ids: the first word of a peer has none.
    const [ofB, ofHost] = [device, this.host.device].map((each) => each.receive.bind(each));
    device.receive = (data, ...rest) => {
      const isFirst = parseCmMad(data)?.message.name === 'REQ';
      (isFirst ? ofB! : ofHost!)(data, ...rest);
    };
  }

  /** A queue pair of the host's, as b has it. */
  get qp(): FakeQueuePair {
    const cmElsewhere: CmElsewhere = {
      accept: (request, { qp: _qp, onEvent: _onEvent, ...options }) => {
        this.handed.push(request);
        if (this.failure) throw this.failure;
        const qp = this.host.device.connectableQp(QpType.XRC_TGT);
        const events: CmEvent[] = [];
        const onEvent = (event: CmEvent): void => void events.push(event);
        const connection = this.host.cm.acceptHanded(request, { ...options, qp, onEvent });
        this.accepted = { qp, connection, events };
      },
      repeat: (request) => {
        this.repeats += 1;
        this.host.cm.repeatHanded(request);
      },
    };
    return Object.assign(this.pair.b.device.connectableQp(QpType.XRC_TGT), { cmElsewhere });
  }

  accept(request: CmRequest): ReturnType<CmRequest['accept']> {
    const privateData = text('welcome');
    const events = { onEvent: (): never => assert.fail('told here') };
    return request.accept({ ...PARAMETERS, qp: this.qp, privateData, ...events });
  }

  ask(): Side {
    const qp = this.pair.a.device.connectableQp(QpType.XRC_INI);
    return { ...this.pair.connect({ qp }), qp };
  }
}

describe('CM: a request that another process answers', () => {
  it('is established there: nothing of it is left here', async () => {
    const handing = new Handing();
    const { pair, host } = handing;
    pair.listenXrc((request) => {
      const { state, remoteGid } = handing.accept(request);
      assert.equal(state, 'HANDED_OVER');
      assert.deepEqual(remoteGid, pair.a.device.gids[0]);
    });
    const active = handing.ask();
    await pair.world.runFor(100_000);
    assert.deepEqual(pair.messages, ['REQ', 'REP', 'RTU']);
    assert.equal(pair.bodies('REP')[0]?.localEecn, handing.accepted!.qp.qpn);
    const [event] = active.events;
    assert.ok(event?.type === 'established');
    assert.equal(textOf(event.privateData), 'welcome');
    assert.deepEqual(typesOf(handing.accepted!.events), ['established']);
    assert.equal(handing.accepted!.qp.state, QpState.RTR);
    assert.ok(pair.b.cm.isIdle && !host.cm.isIdle);
  });

  it('copies go there while they may be repeated, and the consumer is asked once', async () => {
    const handing = new Handing();
    const { pair } = handing;
    pair.listenXrc((request) => void handing.accept(request));
    // Of the REPs, the first two are lost.
    for (const lost of [1, 2]) pair.tamper('REP', lost, []);
    pair.tamper('REQ', 1, [10, 5_000]);
    const active = handing.ask();
    await pair.world.runFor(3_000_000);
    assert.equal(pair.requests.length, 1);
    assert.ok(handing.repeats >= 1);
    assert.deepEqual(typesOf(active.events), ['established']);
    assert.deepEqual(typesOf(handing.accepted!.events), ['established']);
  });

  it('ends there, with either side, and copies that come later make no new one', async () => {
    const handing = new Handing();
    const { pair, host } = handing;
    pair.listenXrc((request) => void handing.accept(request));
    const active = handing.ask();
    await pair.world.runFor(100_000);
    active.connection.disconnect();
    await pair.world.runFor(100_000);
    const { events, qp } = handing.accepted!;
    assert.deepEqual(typesOf(events), ['established', 'disconnected']);
    assert.equal(qp.state, QpState.ERR);
    await pair.world.run();
    assert.ok(host.cm.isIdle);
    const parcel = pair.network.carried[0]!;
    pair.b.device.receive(parcel.data, pair.a.device.gids[0]!, parcel.destination);
    await pair.world.runFor(1_000);
    assert.ok(host.cm.isIdle);
  });

  it('is as it was when the other process cannot', async () => {
    const handing = new Handing();
    const { pair } = handing;
    handing.failure = new SpiError('EIO', 'the host has ended');
    pair.listenXrc((request) => {
      assert.throws(() => handing.accept(request), /the host has ended/);
      handing.failure = undefined;
      handing.accept(request);
      assert.throws(() => handing.accept(request), /request is gone/);
    });
    const active = handing.ask();
    await pair.world.runFor(100_000);
    assert.equal(handing.handed.length, 2);
    assert.deepEqual(typesOf(active.events), ['established']);
  });

  it('a copy of what is answered, and what is no REQ, are refused', async () => {
    const handing = new Handing();
    const { pair, host } = handing;
    pair.listenXrc((request) => void handing.accept(request));
    handing.ask();
    await pair.world.runFor(100_000);
    const [request] = handing.handed;
    const options = { ...PARAMETERS, privateData: text(''), onEvent: () => undefined };
    const qp = host.device.connectableQp(QpType.XRC_TGT);
    assert.throws(
      () => host.cm.acceptHanded(request!, { ...options, qp }),
      (error) => error instanceof SpiError && error.code === 'ENOTCONN',
    );
    for (const data of [new Uint8Array(256), new Uint8Array(7), pair.network.carried[1]!.data]) {
      const bad = { ...request!, data };
      assert.throws(() => host.cm.acceptHanded(bad, { ...options, qp }), /no REQ/);
      assert.throws(() => host.cm.repeatHanded(bad), /no REQ/);
    }
    assert.equal(qp.state, QpState.INIT);
  });

  it('a queue pair that the host refuses leaves nothing behind', async () => {
    const handing = new Handing();
    const { pair, host } = handing;
    let request: HandedRequest | undefined;
    pair.listenXrc((asked) => {
      handing.failure = new SpiError('EIO', 'not now');
      assert.throws(() => handing.accept(asked), /not now/);
      [request] = handing.handed;
    });
    handing.ask();
    await pair.world.runFor(1_000);
    const options = { ...PARAMETERS, privateData: text(''), onEvent: () => undefined };
    const rc = host.device.connectableQp();
    assert.throws(() => host.cm.acceptHanded(request!, { ...options, qp: rc }), /must be XRC_TGT/);
    assert.ok(host.cm.isIdle);
  });
});

/** XRC: one connection from a node reaches receivers of all adapters of a device. */
import assert from 'node:assert/strict';
import { DatDto, type DatEvent, RemoteSegment, type XrcDomainOptions } from 'dapl';
import { gidFromIp, QpState } from 'dapl/spi';
import { type Claim, group } from '../behaviour.js';
import {
  assertSameBytes,
  ask,
  CONN_QUAL,
  fillPattern,
  meet,
  refuses,
  settle,
  textOf,
  until,
} from '../peer.js';
import {
  askReceiver,
  Initiator,
  leave,
  pathMtuOf,
  reach,
  Receiver,
  textOfBytes,
  type Reach,
} from './xrc-receiver.js';

const NEEDS = ['xrc', 'second-adapter'] as const;
const EVERY_OPERATION = [...NEEDS, 'rdma-read', 'atomic'] as const;
const CONNECTED = [...NEEDS, 'xrc-connections'] as const;

export const reachingMany = group('Reaching many receivers (XRC)', (claim) => {
  const xrc: Claim = (name, run) => claim(name, run, NEEDS);
  const connected: Claim = (name, run) => claim(name, run, CONNECTED);
  delivering(xrc);
  operating((name, run) => claim(name, run, EVERY_OPERATION));
  living(connected);
  failing(xrc);
  refusing(xrc);
  accepting(connected);
});

async function arrives({ receivers }: Reach, who: number, text: string): Promise<void> {
  assert.equal(textOfBytes((await receivers[who]!.received()).bytes), text);
}

function delivering(claim: Claim): void {
  claim('a request goes to the queue that it names, through one connection', async (pair) => {
    const scene = await reach(pair, 3);
    const { initiator, receivers, target } = scene;
    for (const receiver of receivers) receiver.post(5, 6);
    const order = [2, 0, 1, 1, 0, 2];
    for (const [i, who] of order.entries()) initiator.send(receivers[who]!, `to ${who}: ${i}`, i);
    for (const i of order.keys()) await initiator.expect(`dto ${i} SUCCESS`);
    for (const [who, receiver] of receivers.entries()) {
      for (const cookie of [5, 6]) {
        const received = await receiver.received();
        assert.deepEqual([received.cookie, received.targetQpn], [cookie, target]);
        assert.match(textOfBytes(received.bytes), new RegExp(`^to ${who}:`));
      }
    }
    await leave(scene);
  });

  claim('immediate data comes with the receive', async (pair) => {
    const scene = await reach(pair, 1);
    const { initiator, receivers } = scene;
    const [receiver] = receivers;
    receiver!.post(1, 2);
    const { ep, lmr } = initiator;
    ep.toSrq(receiver!.srq.srqn).postSendWithImmediate(lmr.segment(0, 4), 1, 0xdead);
    ep.postRdmaWriteWithImmediate(lmr.segment(0, 4), 2, receiver!.remote(), 0xbeef);
    const seen: DatEvent[] = [await receiver!.next(), await receiver!.next()];
    assert.deepEqual(
      seen.map((event) => event.type === 'xrc-receive' && [event.operation, event.immediate]),
      [
        [DatDto.RECV_MSG_IMMED, 0xdead],
        [DatDto.RECV_IMMED, 0xbeef],
      ],
    );
  });

  claim(
    'a receiver without receives holds the connection up, and then it goes on',
    async (pair) => {
      const scene = await reach(pair, 2);
      const { initiator, receivers } = scene;
      receivers[1]!.post(0);
      initiator.send(receivers[0]!, 'slow', 1);
      initiator.send(receivers[1]!, 'quick', 2);
      await settle(pair);
      assert.equal(receivers[1]!.evd.dequeue(), undefined);
      receivers[0]!.post(0);
      await initiator.expect('dto 1 SUCCESS', 'dto 2 SUCCESS');
      await arrives(scene, 0, 'slow');
      await arrives(scene, 1, 'quick');
      await leave(scene);
    },
  );

  claim('a queue without an EVD offers its receives as a stream', async (pair) => {
    const scene = await reach(pair, 1);
    const { initiator } = scene;
    const receiver = scene.receivers[0]!;
    const srq = receiver.domain.createSrq({ pz: receiver.pz, maxRecvDtos: 2 });
    const seen = new Promise<DatEvent>((resolve) => srq.completions$.subscribe(resolve));
    srq.postRecv(receiver.place(3), 3);
    initiator.ep.toSrq(srq.srqn).postSend(initiator.lmr.segment(0, 1), 9);
    const event = await seen;
    assert.ok(event.type === 'xrc-receive' && event.cookie === 3);
    await initiator.expect('dto 9 SUCCESS');
    srq.free();
  });
}

function operating(claim: Claim): void {
  claim('every operation works, in the memory of the receiver that is named', async (pair) => {
    const scene = await reach(pair, 2);
    const { initiator } = scene;
    const receiver = scene.receivers[1]!;
    const length = 20_000;
    fillPattern(initiator.lmr.bytes.subarray(0, length), 7);
    const { lmr, ep } = initiator;
    ep.toSrq(receiver.srq.srqn);
    ep.postRdmaWrite(lmr.segment(0, length), 1, receiver.remote());
    await initiator.expect('dto 1 SUCCESS');
    const sent = lmr.bytes.subarray(0, length);
    assertSameBytes(receiver.lmr.bytes.subarray(0, length), sent);
    ep.postRdmaRead(lmr.segment(30_000, length), 2, receiver.remote());
    await initiator.expect('dto 2 SUCCESS');
    assertSameBytes(lmr.bytes.subarray(30_000, 30_000 + length), sent);
    const counter = new DataView(receiver.lmr.bytes.buffer, receiver.lmr.bytes.byteOffset);
    counter.setBigUint64(0, 41n, true);
    ep.postFetchAdd(lmr.segment(0, 8), 3, receiver.remote(), 1n);
    await initiator.expect('dto 3 SUCCESS');
    assert.equal(counter.getBigUint64(0, true), 42n);
    await leave(scene);
  });
}

function living(claim: Claim): void {
  claim(
    'the target survives the adapter that made it, while another is registered',
    async (pair) => {
      const scene = await reach(pair, 2);
      const { initiator, receivers, target } = scene;
      const [creator, other] = receivers as [Receiver, Receiver];
      other.domain.registerTarget(target);
      other.domain.registerTarget(target);
      other.post(1);
      creator.domain.unregisterTarget(target);
      creator.srq.free();
      creator.domain.close();
      initiator.send(other, 'still here', 1);
      await initiator.expect('dto 1 SUCCESS');
      await arrives(scene, 1, 'still here');
      assert.deepEqual([...other.domain.targets], [target]);
      other.domain.unregisterTarget(target);
      await initiator.expect('DISCONNECTED');
      assert.deepEqual([...other.domain.targets], []);
      await leave(scene);
    },
  );

  claim('an adapter that closes is unregistered; the last one ends the target', async (pair) => {
    const scene = await reach(pair, 2);
    const { initiator, receivers, target } = scene;
    const [creator, other] = receivers as [Receiver, Receiver];
    other.domain.registerTarget(target);
    creator.domain.unregisterTarget(target);
    await other.ia.close();
    await initiator.expect('DISCONNECTED');
    assert.deepEqual([...creator.domain.targets], []);
  });

  claim('a target that the domain owns ends with the domain', async (pair) => {
    const scene = await reach(pair, 2, { owner: 'domain' });
    const { initiator, receivers, target } = scene;
    const [creator, other] = receivers as [Receiver, Receiver];
    refuses(() => creator.domain.unregisterTarget(target), 'DAT_INVALID_PARAMETER');
    creator.srq.free();
    creator.domain.close();
    other.post(1);
    initiator.send(other, 'owned by nobody', 1);
    await initiator.expect('dto 1 SUCCESS');
    await arrives(scene, 1, 'owned by nobody');
    await other.ia.close();
    await initiator.expect('DISCONNECTED');
  });

  claim(
    'the initiator disconnects: the acceptor is told, the target takes no more',
    async (pair) => {
      const scene = await reach(pair, 2);
      const { initiator, receivers, target } = scene;
      const [acceptor, other] = receivers as [Receiver, Receiver];
      other.domain.registerTarget(target);
      initiator.ep.disconnect('graceful');
      await initiator.expect('DISCONNECTED');
      await until(
        pair,
        () => acceptor.told(target).length > 1 && other.told(target).length > 0,
        () => `told: ${acceptor.told(target).join()} / ${other.told(target).join()}`,
      );
      assert.deepEqual(acceptor.told(target).sort(), ['DISCONNECTED', 'QP_LAST_WQE_REACHED']);
      assert.deepEqual(other.told(target), ['QP_LAST_WQE_REACHED']);
      assert.equal(other.domain.queryTarget(target).state, QpState.ERR);
      acceptor.domain.unregisterTarget(target);
      other.domain.unregisterTarget(target);
      await leave(scene);
    },
  );

  claim('an initiator that was disconnected connects again after a reset', async (pair) => {
    const scene = await reach(pair, 1);
    const { initiator, receivers, target } = scene;
    const [receiver] = receivers as [Receiver];
    initiator.ep.disconnect();
    await initiator.expect('DISCONNECTED');
    initiator.ep.reset();
    const cr = await askReceiver(pair, initiator, receiver);
    const again = receiver.domain.accept(cr);
    await initiator.expect('ESTABLISHED');
    assert.notEqual(again, target);
    refuses(() => initiator.ep.postSend(initiator.lmr.segment(0, 1)), 'DAT_INVALID_PARAMETER');
    receiver.post(1);
    initiator.send(receiver, 'second life', 4);
    await initiator.expect('dto 4 SUCCESS');
    await arrives(scene, 0, 'second life');
  });
}

function failing(claim: Claim): void {
  claim('every registered adapter hears once that the target is in error', async (pair) => {
    const scene = await reach(pair, 3);
    const { initiator, receivers, target } = scene;
    const [creator, registered, stranger] = receivers as [Receiver, Receiver, Receiver];
    registered.domain.registerTarget(target);
    stranger.domain.modifyTarget(target, { state: QpState.ERR });
    initiator.send(creator, 'into the void', 1);
    await initiator.expect('dto 1 TRANSPORT', 'BROKEN');
    await until(
      pair,
      () => [creator, registered].every((receiver) => receiver.told(target).length > 0),
      () => 'nothing tells of the target',
    );
    const heard = [creator, registered, stranger].map((receiver) => receiver.told(target));
    const [first] = heard as [string[]];
    assert.equal(first[0], 'QP_LAST_WQE_REACHED');
    assert.deepEqual(heard.slice(1), [['QP_LAST_WQE_REACHED'], []]);
    await leave(scene);
  });
}

function accepting(claim: Claim): void {
  claim('a request is accepted by what it asks for', async (pair) => {
    const receiver = await Receiver.of(pair);
    const initiator = await Initiator.of(pair.active);
    const cr = await askReceiver(pair, initiator, receiver);
    assert.equal(cr.transport, 'xrc');
    const peers = meet(pair);
    refuses(() => cr.accept(peers.passive.ep), 'DAT_INVALID_PARAMETER');
    cr.reject();
    await initiator.expect('PEER_REJECTED');
    const psp = receiver.ia.createPsp({ connQual: CONN_QUAL });
    initiator.ep.reset();
    initiator.ep.connect({ address: pair.passiveAddress, connQual: CONN_QUAL });
    await initiator.expect('PEER_REJECTED');
    psp.free();
    const plain = await ask(peers);
    assert.equal(plain.transport, 'rc');
    refuses(() => receiver.domain.accept(plain), 'DAT_INVALID_PARAMETER');
    assert.deepEqual([...receiver.domain.targets], []);
    plain.accept(peers.passive.ep);
    assert.equal(textOf(await peers.active.next()), 'ESTABLISHED');
  });
}

function refusing(claim: Claim): void {
  claim('a queue that does not exist there ends the connection', async (pair) => {
    const scene = await reach(pair, 1);
    const { initiator, receivers, target } = scene;
    const [receiver] = receivers as [Receiver];
    receiver.srq.free();
    initiator.send(receiver, 'nobody', 1);
    await initiator.expect('dto 1 REMOTE_RESPONDER', 'BROKEN');
    const told = (): string[] => receiver.told(target);
    await until(
      pair,
      () => told().includes('QP_REQ_ERR'),
      () => `told: ${told().join()}`,
    );
  });

  claim('a region of another receiver is out of reach', async (pair) => {
    const scene = await reach(pair, 2);
    const { initiator, receivers } = scene;
    const [first, second] = receivers as [Receiver, Receiver];
    const { lmr, ep } = initiator;
    ep.toSrq(second.srq.srqn).postRdmaWrite(lmr.segment(0, 8), 1, first.remote());
    await initiator.expect('dto 1 REMOTE_ACCESS', 'BROKEN');
    await leave(scene);
  });

  claim('an initiator posts for a queue that it names, and receives nothing', async (pair) => {
    const { ep, lmr, evd, pz } = await Initiator.of(pair.active);
    const remote = new RemoteSegment({ address: 0n, rmrContext: 1 });
    refuses(() => ep.toSrq(0), 'DAT_INVALID_PARAMETER');
    refuses(() => ep.toSrq(2 ** 24), 'DAT_INVALID_PARAMETER');
    refuses(() => ep.postRecv(lmr.segment()), 'DAT_INVALID_STATE');
    refuses(() => ep.toSrq(1).postSend(lmr.segment(0, 1)), 'DAT_INVALID_STATE_EP_UNCONNECTED');
    refuses(() => ep.postRdmaWrite(lmr.segment(0, 1), 1, remote), 'DAT_INVALID_STATE');
    assert.equal(evd.dequeue(), undefined);
    assert.equal(ep.pz, pz);
  });

  claim('domains are opened by key: exclusive, existing, private', async (pair) => {
    const { passive: ia } = pair;
    const isRefused = async (options: XrcDomainOptions, code: string): Promise<void> => {
      const opened = await ia.openXrcDomain(options).catch((error: unknown) => error);
      refuses(() => {
        throw opened;
      }, code);
    };
    await isRefused({ key: 'k', mode: 'existing' }, 'DAT_INVALID_PARAMETER');
    const domain = await ia.openXrcDomain({ key: 'k', mode: 'exclusive' });
    await isRefused({ key: 'k', mode: 'exclusive' }, 'DAT_INVALID_STATE');
    await isRefused({ key: '' }, 'DAT_INVALID_PARAMETER');
    await isRefused({ mode: 'perhaps' as 'create' }, 'DAT_INVALID_PARAMETER');
    const [again, one] = await Promise.all([
      ia.openXrcDomain({ key: 'k', mode: 'existing' }),
      ia.openXrcDomain(),
    ]);
    assert.notEqual(one.key, 'k');
    domain.close();
    again.close();
    refuses(() => domain.close(), 'DAT_INVALID_HANDLE');
    await isRefused({ key: 'k', mode: 'existing' }, 'DAT_INVALID_PARAMETER');
  });

  claim('a domain closes when its own queues and initiators are gone', async (pair) => {
    const receiver = await Receiver.of(pair);
    const { ep, domain } = await Initiator.of(pair.active);
    refuses(() => receiver.domain.close(), 'DAT_INVALID_STATE');
    refuses(() => domain.close(), 'DAT_INVALID_STATE');
    receiver.srq.free();
    ep.free();
    receiver.domain.close();
    domain.close();
  });

  claim('a target by attributes, an initiator attached to it: no CM between them', async (pair) => {
    const receiver = await Receiver.of(pair);
    const initiator = await Initiator.of(pair.active);
    const sendPsn = 0xabcdef;
    const pathMtuBytes = pathMtuOf(pair);
    const target = receiver.domain.createTarget({
      accessFlags: 0,
      pkeyIndex: 0,
      portNumber: 1,
      addressVector: { gid: gidFromIp(pair.active.address), localGidIndex: 0 },
      pathMtuBytes,
      destinationQpn: initiator.ep.qpn,
      receivePsn: sendPsn,
      minRnrTimer: 14,
      timeout: 14,
      retryCount: 7,
    });
    assert.equal(receiver.domain.queryTarget(target).state, QpState.RTR);
    const address = pair.passiveAddress;
    const wrong = { address, targetQpn: target, sendPsn: 2 ** 24 };
    refuses(() => initiator.ep.attach(wrong), 'DAT_INVALID_PARAMETER');
    refuses(() => initiator.ep.attach({ ...wrong, address: 'x' }), 'DAT_INVALID_ADDRESS');
    initiator.ep.attach({ address, targetQpn: target, sendPsn, pathMtuBytes });
    await initiator.expect('ESTABLISHED');
    receiver.post(1);
    initiator.send(receiver, 'by numbers alone', 3);
    await initiator.expect('dto 3 SUCCESS');
    assert.equal(textOfBytes((await receiver.received()).bytes), 'by numbers alone');
    receiver.domain.unregisterTarget(target);
    initiator.send(receiver, 'nobody is there', 4);
    await initiator.expect('dto 4 TRANSPORT', 'BROKEN');
  });

  claim('a target by attributes: what is missing or refused is named', async (pair) => {
    const { domain } = await Receiver.of(pair);
    const named = (attributes: object, ...parts: RegExp[]): void =>
      assert.throws(
        () => domain.createTarget(attributes),
        (error: Error) => parts.every((part) => part.test(error.message)),
      );
    named({ pkeyIndex: 0, portNumber: 1 }, /accessFlags missing/, /RESET->INIT/, /ACCESS_FLAGS/);
    named({ sendPsn: 1 }, /sendPsn refused/, /SQ_PSN/, /mask 0x10000/);
    refuses(() => domain.registerTarget(77), 'DAT_INVALID_PARAMETER');
    refuses(() => domain.queryTarget(77), 'DAT_INVALID_PARAMETER');
    refuses(() => domain.unregisterTarget(-1), 'DAT_INVALID_PARAMETER');
  });
}

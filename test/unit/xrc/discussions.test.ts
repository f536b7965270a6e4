/**
 * The questions of openib-general, December 2007 (a receiving QP independent of any one process)
 * and linux-rdma, April 2010 (reg, unreg and destroy), each as a case.
 */
import assert from 'node:assert/strict';
import * as core from '../../../core/index.js';
import { type AsyncEventType, QpState, SpiError } from '../../../core/spi/index.js';
import * as spi from '../../../core/spi/index.js';
import { targetAttributes } from '../../support/fake-xrc-device.js';
import { FATAL, XrcWorld } from '../../support/xrc-world.js';

const refused = (code: string) => (error: unknown) =>
  error instanceof SpiError && error.code === code;

describe('XRC targets: what the discussion of 2010 asks', () => {
  it('create + register + destroy by one consumer: registered once, so it ends', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    const qpn = a.create();
    a.register(qpn);
    a.unregister(qpn);
    assert.equal(world.destroyed(qpn), 1);
    assert.throws(() => a.unregister(qpn), refused('EINVAL'));
  });

  it('create + destroy, without register: the creator is registered by creating', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    const qpn = a.create();
    a.unregister(qpn);
    assert.equal(world.destroyed(qpn), 1);
  });

  it('destroy while another is registered: only a registration ends', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    b.register(qpn);
    a.unregister(qpn);
    assert.ok(world.lives(qpn));
    world.fail(qpn);
    assert.deepEqual([a.events, b.events], [[], [`${qpn}:${FATAL}`]]);
    b.unregister(qpn);
    assert.equal(world.destroyed(qpn), 1);
  });

  it('destroy by who never registered is refused, also of a creator that did it already', () => {
    const world = new XrcWorld();
    const [a, b, c] = [world.consumer('a'), world.consumer('b'), world.consumer('c')];
    for (const consumer of [a, b, c]) consumer.open();
    const qpn = a.create();
    assert.throws(() => b.unregister(qpn), refused('EINVAL'));
    b.register(qpn);
    a.unregister(qpn);
    assert.throws(() => a.unregister(qpn), refused('EINVAL'));
    assert.throws(() => c.unregister(qpn), refused('EINVAL'));
    assert.ok(world.lives(qpn));
  });

  it('register after the last unregister: the number is nobody’s', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    a.unregister(qpn);
    assert.throws(() => b.register(qpn), refused('EINVAL'));
    assert.throws(() => a.register(qpn), refused('EINVAL'));
  });

  it('registering twice is once, by creator and others; the later handler hears', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    const second: number[] = [];
    b.register(qpn);
    b.domain.register(qpn, (event) => void second.push(event));
    world.fail(qpn);
    assert.deepEqual([a.events, b.events, second], [[`${qpn}:${FATAL}`], [], [FATAL]]);
    b.unregister(qpn);
    assert.throws(() => b.unregister(qpn), refused('EINVAL'));
    assert.ok(world.lives(qpn));
  });

  it('the creating process exits: the QP survives while others are registered', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    b.register(qpn);
    a.exit();
    assert.ok(world.lives(qpn));
    assert.equal(b.domain.query(qpn).state, QpState.RTR);
    b.exit();
    assert.equal(world.destroyed(qpn), 1);
    assert.equal(world.fake.living.size, 0);
  });

  it('the creating process stays until all others have finished: no registering needed', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    b.exit();
    assert.ok(world.lives(qpn));
    a.exit();
    assert.equal(world.destroyed(qpn), 1);
  });

  it('a process that exits is unregistered from every target of every domain', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    const domains = ['k', 'l'].map((key) => [a.open(key), b.open(key)] as const);
    const qpns = domains.map(([own, others]) => {
      a.domain = own;
      b.domain = others;
      const qpn = a.create();
      b.register(qpn);
      return qpn;
    });
    b.exit();
    for (const qpn of qpns) world.fail(qpn);
    assert.equal(b.events.length, 0);
    a.exit();
    assert.deepEqual(
      qpns.map((qpn) => world.destroyed(qpn)),
      [1, 1],
    );
  });

  it('an event goes to every registered consumer once, so that each can unregister', () => {
    const world = new XrcWorld();
    const all = ['a', 'b', 'c'].map((name) => world.consumer(name));
    for (const consumer of all) consumer.open();
    const [a, b, c] = all as [(typeof all)[0], (typeof all)[0], (typeof all)[0]];
    const qpn = a.create();
    const heard: string[] = [];
    for (const consumer of [a, b, c]) {
      consumer.domain.register(qpn, () => {
        heard.push(consumer.name);
        consumer.unregister(qpn);
      });
    }
    world.fail(qpn);
    assert.deepEqual(heard, ['a', 'b', 'c']);
    assert.equal(world.destroyed(qpn), 1);
  });

  it('a consumer that another one’s handler has ended hears nothing more', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    a.domain.register(qpn, () => b.exit());
    b.register(qpn);
    world.fail(qpn);
    assert.deepEqual(b.events, []);
  });

  it('a handler that throws keeps no other from hearing', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    a.domain.register(qpn, () => {
      throw new Error('on purpose');
    });
    b.register(qpn);
    world.fail(qpn);
    assert.equal(b.events.length, 1);
    assert.match(world.log.lines.join(), /an event handler threw/);
  });

  it('it is called target, as in the specification; no destroy beside unregister', () => {
    const members = Object.getOwnPropertyNames(core.XrcDomain.prototype);
    const calls = ['createTarget', 'registerTarget', 'unregisterTarget'];
    for (const name of [...calls, 'modifyTarget', 'queryTarget']) assert.ok(members.includes(name));
    assert.ok(!members.some((name) => /^destroy./.test(name)), 'unregistering is destroying');
    const names = [...members, ...Object.keys(core), ...Object.keys(spi)];
    assert.deepEqual(
      names.filter((name) => /rcv|receiveQp/i.test(name)),
      [],
    );
  });

  it('the device hears of nothing but the end: once', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    b.register(qpn);
    b.unregister(qpn);
    b.register(qpn);
    a.exit();
    assert.equal(world.destroyed(qpn), 0);
    b.domain.close();
    a.exit();
    assert.equal(world.destroyed(qpn), 1);
  });
});

describe('XRC targets: the form of 2007', () => {
  it('a target that the domain owns is counted for nobody and ends with the domain', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create('domain');
    assert.throws(() => a.unregister(qpn), refused('EINVAL'), 'the creator is not registered');
    a.exit();
    assert.ok(world.lives(qpn));
    b.exit();
    assert.equal(world.destroyed(qpn), 1);
  });

  it('nobody passes a protection domain: the domain has one of its own for all targets', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    assert.equal(world.fake.count('pd'), 0);
    const [first, second] = [a.create('domain'), a.create()].map((qpn) => world.fake.find(qpn));
    assert.equal(world.fake.count('pd'), 1);
    assert.equal(first?.init.pd, second?.init.pd);
    a.exit();
    assert.equal(world.fake.count('pd'), 0);
  });

  it('events of it go to the log', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    const qpn = a.create('domain');
    world.fail(qpn);
    assert.deepEqual(a.events, []);
    assert.match(world.log.lines.join(), new RegExp(`target ${qpn}: QP_FATAL`));
  });

  it('who registers with it hears its events, and does not keep or end it', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create('domain');
    b.register(qpn);
    world.fail(qpn);
    assert.deepEqual(b.events, [`${qpn}:${FATAL}`]);
    assert.deepEqual(world.log.lines, []);
    b.unregister(qpn);
    assert.ok(world.lives(qpn));
  });

  it('is reached by number alone: modify and query, by whoever shares the domain', () => {
    const world = new XrcWorld();
    const [a, b, c] = [world.consumer('a'), world.consumer('b'), world.consumer('c')];
    a.open();
    b.open();
    c.open('another');
    const qpn = a.create('domain');
    assert.deepEqual([...b.domain.targets], [qpn]);
    assert.equal(b.domain.query(qpn).destinationQpn, targetAttributes().destinationQpn);
    b.domain.modify(qpn, { state: QpState.ERR });
    assert.equal(a.domain.query(qpn).state, QpState.ERR);
    for (const attempt of [
      () => c.domain.query(qpn),
      () => c.domain.modify(qpn, { state: QpState.ERR }),
      () => c.register(qpn),
      () => c.unregister(qpn),
    ]) {
      assert.throws(attempt, refused('EINVAL'));
    }
  });

  it('a modify that the transition refuses changes nothing', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    const qpn = a.create();
    const bad = { state: QpState.RTS, sendPsn: 1 };
    assert.throws(() => a.domain.modify(qpn, bad), /XRC_TGT RTR->RTS: timeout missing/);
    assert.equal(a.domain.query(qpn).state, QpState.RTR);
    a.domain.modify(qpn, { ...bad, timeout: 14 });
    assert.equal(a.domain.query(qpn).state, QpState.RTS);
  });

  it('one that waits for a CM is in INIT, counted like any other', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    const onEvent = (event: AsyncEventType): void => void a.events.push(String(event));
    const qp = a.domain.prepareTarget({ owner: 'consumer', onEvent });
    assert.equal(qp.state, QpState.INIT);
    world.fail(qp.qpn);
    assert.deepEqual(a.events, [String(FATAL)]);
    a.unregister(qp.qpn);
    assert.equal(world.destroyed(qp.qpn), 1);
  });

  it('an event that comes when the QP is gone concerns nobody', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    const qpn = a.create();
    a.unregister(qpn);
    world.fail(qpn);
    assert.deepEqual([a.events, world.log.lines], [[], []]);
  });
});

/** Holds that are given up, and ends that fail or are told to whoever prepared a target. */
import assert from 'node:assert/strict';
import {
  type CompletionQueue,
  type ProtectionDomain,
  SpiError,
  type XrcDomain,
  type XrcTargetOwner,
} from '../../../core/spi/index.js';
import { targetAttributes } from '../../support/fake-xrc-device.js';
import { XrcWorld } from '../../support/xrc-world.js';

const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && message.test(error.message);
const onEvent = (): void => undefined;
const pd = {} as ProtectionDomain;
const cq = {} as CompletionQueue;

describe('XRC: a hold on a domain that has been given up', () => {
  const calls: Readonly<Record<string, (domain: XrcDomain, qpn: number) => void>> = {
    createSharedReceiveQueue: (domain) =>
      void domain.createSharedReceiveQueue({ pd, cq, maxWr: 4, maxSge: 1, onEvent }),
    createTarget: (domain) =>
      void domain.createTarget({ attributes: targetAttributes(), owner: 'consumer', onEvent }),
    prepareTarget: (domain) =>
      void domain.prepareTarget({ owner: 'consumer', onEvent, onEnd: onEvent }),
    register: (domain, qpn) => domain.register(qpn, onEvent),
    unregister: (domain, qpn) => domain.unregister(qpn),
    modify: (domain, qpn) => domain.modify(qpn, { minRnrTimer: 3 }),
    query: (domain, qpn) => void domain.query(qpn),
  };
  for (const [call, make] of Object.entries(calls)) {
    it(`refuses ${call}, and the domain goes on for others`, () => {
      const world = new XrcWorld();
      const [a, b] = [world.consumer('a'), world.consumer('b')];
      a.open();
      b.open();
      const qpn = b.create();
      a.domain.close();
      const living = world.fake.living.size;
      assert.throws(() => make(a.domain, qpn), refused('EINVAL', /handle of the domain is closed/));
      assert.equal(world.fake.living.size, living);
      assert.ok(world.lives(qpn));
      // Closing once more takes nothing from others.
      a.domain.close();
      assert.ok(world.lives(qpn));
      b.unregister(qpn);
      b.domain.close();
      assert.equal(world.fake.living.size, 0);
    });
  }
});

describe('XRC: a consumer with two holds on a domain', () => {
  it('keeps the second when the first is closed twice', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    const first = a.open();
    a.open();
    const qpn = a.create();
    first.close();
    first.close();
    assert.ok(world.lives(qpn));
    a.domain.close();
    assert.equal(world.fake.living.size, 0);
  });
});

describe('XRC: a port number', () => {
  for (const portNumber of [0, 256, -1, 1.5]) {
    it(`is refused: ${portNumber}`, () => {
      const world = new XrcWorld();
      const domain = world.consumer('a').open();
      const attributes = targetAttributes({ portNumber });
      assert.throws(
        () => domain.createTarget({ attributes, owner: 'consumer', onEvent }),
        refused('EINVAL', /portNumber/),
      );
      assert.deepEqual(domain.targets, []);
    });
  }
});

describe('XRC: the end of a target that was prepared', () => {
  for (const owner of ['consumer', 'domain'] as const) {
    it(`is told once, whichever way it comes (${owner})`, () => {
      const ways: Readonly<Record<string, (domain: XrcDomain, destroy: () => void) => void>> = {
        'its queue pair is destroyed': (_domain, destroy) => destroy(),
        'the domain is closed': (domain) => domain.close(),
      };
      for (const [way, end] of Object.entries(ways)) {
        const world = new XrcWorld();
        const domain = world.consumer('a').open();
        let ends = 0;
        const qp = domain.prepareTarget({ owner, onEvent, onEnd: () => void ends++ });
        assert.deepEqual(domain.targets, [qp.qpn]);
        end(domain, () => qp.destroy());
        assert.equal(ends, 1, way);
        assert.deepEqual(domain.targets, [], way);
        assert.equal(world.destroyed(qp.qpn), 1, way);
      }
    });
  }

  it('needs an owner that is one of the two', () => {
    const world = new XrcWorld();
    const domain = world.consumer('a').open();
    const owner = 'nobody' as XrcTargetOwner;
    assert.throws(
      () => domain.prepareTarget({ owner, onEvent, onEnd: onEvent }),
      refused('EINVAL', /nobody/),
    );
    assert.equal(world.fake.count('qp'), 0);
  });

  it('shares what targets need with the others of the domain', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    for (let i = 0; i < 3; i++) a.create();
    assert.deepEqual([world.fake.count('pd'), world.fake.count('cq')], [1, 1]);
  });
});

describe('XRC: domains that do not close', () => {
  for (const count of [1, 2] as const) {
    it(`are told of when a consumer ends, after all has been tried: ${count}`, () => {
      const world = new XrcWorld();
      const a = world.consumer('a');
      const keys = ['k', 'l', 'm'];
      const targets = keys.map((key) => {
        a.open(key);
        return a.create();
      });
      for (const qpn of targets.slice(0, count)) {
        world.fake.find(qpn).destroy = () => {
          throw new SpiError('EIO', `queue pair ${qpn}`);
        };
      }
      assert.throws(
        () => a.exit(),
        (error: unknown) =>
          count === 1
            ? error instanceof SpiError && error.message === `queue pair ${targets[0]}`
            : error instanceof AggregateError && error.errors.length === count,
      );
      assert.ok(!world.lives(targets[2] ?? 0), 'the last domain has closed all the same');
    });
  }
});

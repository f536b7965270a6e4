/** Domains: opening by key, closing, and what is left when a consumer or the device ends. */
import assert from 'node:assert/strict';
import {
  type CompletionQueue,
  type ProtectionDomain,
  SpiError,
  type XrcDomain,
  type XrcDomainHandle,
  type XrcOpenMode,
} from '../../../core/spi/index.js';
import { Xrc } from '../../../plugins/xrc/index.js';
import { XrcWorld } from '../../support/xrc-world.js';

const refused = (code: string, message?: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && (message?.test(error.message) ?? true);

const pd = {} as ProtectionDomain;
const cq = {} as CompletionQueue;
const onEvent = (): void => undefined;
const srqOf = (domain: XrcDomain): { destroy(): void } =>
  domain.createSharedReceiveQueue({ pd, cq, maxWr: 4, maxSge: 1, onEvent });
const iniOf = (domain: XrcDomain): { destroy(): void } =>
  domain.createInitiator({
    pd,
    sendCq: cq,
    maxSendWr: 1,
    maxSendSge: 1,
    maxInlineBytes: 0,
    context: 1,
    onEvent,
  });

describe('XRC domains', () => {
  it('are found by key, made when they are not there, and told apart', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open('k', 'exclusive');
    b.open('k', 'existing');
    assert.equal(world.fake.count('domain'), 1);
    b.open('l', 'create');
    assert.equal(world.fake.count('domain'), 2);
  });

  it('exclusive refuses one that exists, existing one that does not', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    assert.throws(() => a.open('k', 'existing'), refused('ENODEV', /"k"/));
    a.open('k');
    assert.throws(() => b.open('k', 'exclusive'), refused('EINVAL', /"k" exists/));
    a.domain.close();
    assert.throws(() => b.open('k', 'existing'), refused('ENODEV'));
    b.open('k', 'exclusive');
  });

  it('without a key are private: each opening another one', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    const opened = [
      world.module.openDomain(a, undefined, 'create') as XrcDomain,
      world.module.openDomain(b, undefined, 'exclusive') as XrcDomain,
    ];
    assert.equal(world.fake.count('domain'), 2);
    assert.throws(() => world.module.openDomain(a, undefined, 'existing'), refused('ENODEV'));
    for (const domain of opened) domain.close();
    assert.equal(world.fake.living.size, 0);
  });

  it('refuse a mode that does not exist, and a device without XRC', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    assert.throws(() => a.open('k', 'maybe' as 'create'), refused('EINVAL', /maybe/));
    world.fake.capabilities.delete('xrc');
    assert.throws(() => a.open(), refused('EOPNOTSUPP', /fake-xrc/));
  });

  it('a close is refused while own queues or initiators are in it', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const [srq, ini] = [srqOf(a.domain), iniOf(a.domain)];
    b.domain.close();
    assert.throws(() => a.domain.close(), refused('EBUSY', /1 shared .* 1 initiators/));
    srq.destroy();
    assert.throws(() => a.domain.close(), refused('EBUSY'));
    ini.destroy();
    a.domain.close();
    assert.equal(world.fake.living.size, 0);
  });

  it('a refused close changes nothing: targets, registrations, the key', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = a.create();
    srqOf(a.domain);
    assert.throws(() => a.domain.close(), refused('EBUSY'));
    b.domain.close();
    assert.ok(world.lives(qpn));
    world.fail(qpn);
    assert.equal(a.events.length, 1);
    b.open('k', 'existing');
  });

  it('two holds of one consumer are two, and its registrations last until the second goes', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    const first = a.open();
    const second = a.open();
    b.open();
    const qpn = a.create();
    second.close();
    assert.ok(world.lives(qpn));
    assert.throws(
      () => second.register(qpn, onEvent),
      refused('EINVAL', /handle of the domain is closed/),
    );
    first.close();
    assert.equal(world.destroyed(qpn), 1);
    assert.equal(world.fake.count('domain'), 1);
  });

  it('closing again does nothing', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open();
    const qpn = b.create();
    a.domain.close();
    a.domain.close();
    assert.ok(world.lives(qpn));
  });

  it('a target that the device refuses leaves nothing', () => {
    const world = new XrcWorld();
    const a = world.consumer('a');
    a.open();
    world.fake.refuseModify = true;
    assert.throws(() => a.create(), refused('EINVAL'));
    assert.equal(world.fake.count('qp'), 0);
    a.exit();
    assert.equal(world.fake.living.size, 0);
  });

  it('a consumer’s exit takes what is its own, in any state of it; again does nothing', () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    srqOf(a.domain);
    iniOf(a.domain);
    b.open();
    const qpn = b.create();
    a.exit();
    a.exit();
    assert.equal(world.fake.count('srq'), 0);
    assert.ok(world.lives(qpn));
    assert.throws(() => srqOf(a.domain), refused('EINVAL'));
    assert.throws(() => iniOf(a.domain), refused('EINVAL'));
    assert.throws(() => a.create(), refused('EINVAL'));
  });

  it('the device’s end takes everything', async () => {
    const world = new XrcWorld();
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    a.open();
    b.open(undefined);
    srqOf(a.domain);
    a.create('domain');
    b.create();
    await world.module.close();
    await world.module.close();
    assert.equal(world.fake.living.size, 0);
    assert.throws(() => a.open(), refused('ENODEV'));
  });

  it('that the device opens later: once for all that ask at once', async () => {
    const world = new XrcWorld();
    const given: ((error?: Error) => void)[] = [];
    const own = world.fake.device;
    const device = Object.assign(world.fake.device, {
      openXrcDomain: () =>
        new Promise<XrcDomainHandle>((resolve, reject) =>
          given.push((error) => (error ? reject(error) : resolve(own.createXrcDomain!()))),
        ),
    });
    const module = new Xrc({ device, logger: world.log.logger });
    const [a, b] = [world.consumer('a'), world.consumer('b')];
    const open = async (consumer: object, mode: XrcOpenMode = 'create'): Promise<XrcDomain> =>
      module.openDomain(consumer, 'k', mode);
    const both = [open(a), open(b)];
    const third = open(a, 'exclusive');
    given[0]!();
    const [first, second] = await Promise.all(both);
    await assert.rejects(third, refused('EINVAL', /"k" exists/));
    assert.deepEqual([given.length, world.fake.count('domain')], [1, 1]);
    first!.close();
    second!.close();
    assert.equal(world.fake.living.size, 0);
    const failing = open(a);
    const after = open(b);
    given[1]!(new SpiError('EIO', 'the host cannot start'));
    await assert.rejects(failing, refused('EIO'));
    await new Promise(setImmediate);
    assert.equal(given.length, 3, 'the next one tries');
    await module.close();
    given[2]!();
    await assert.rejects(after, refused('ENODEV'));
    assert.equal(world.fake.living.size, 0);
  });
});

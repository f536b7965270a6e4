/** XRC over libibverbs: plugins/xrc on the provider's device, over the fake library. */
import assert from 'node:assert/strict';
import {
  AsyncEventType,
  QpState,
  SpiError,
  WcOpcode,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { Feature, Mode, fakeVerbs } from '../../fake-verbs/control.js';
import { Process } from '../../fake-verbs/xrc-process.js';

const refused = (code: string, message?: RegExp) => (error: unknown) =>
  error instanceof SpiError && error.code === code && (message?.test(error.message) ?? true);

let keys = 0;

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

describe('verbs XRC', () => {
  const open: Process[] = [];
  const started = (name?: string): Process => {
    const process = new Process(name);
    open.push(process);
    return process;
  };
  const key = (): string => `test ${process.pid} ${keys++}`;

  beforeEach(() => {
    fakeVerbs().restore();
    fakeVerbs().setMode(Mode.IMMEDIATE);
  });

  afterEach(async () => {
    fakeVerbs().clearInjections();
    for (const process of open.splice(0)) await process.device.close();
    assert.equal(fakeVerbs().objects(), 0);
  });

  it('one connection reaches the queues of all consumers, each in its own memory', () => {
    const [sender, one, two] = [started(), started(), started()];
    const shared = key();
    sender.open();
    one.open(shared);
    two.open(shared, 'existing');
    const queues = [one.srq(), two.srq()] as const;
    const initiator = sender.initiator();
    const target = one.target(initiator);
    sender.attach(initiator, target);
    for (const [i, receiver] of [one, two].entries()) {
      receiver.receive(queues[i]!, 3);
      sender.send(initiator, queues[i]!.srqn, WrOpcode.SEND, { inline: text(`to ${i}`) });
      const [sent] = sender.poll();
      assert.equal(sent?.status, WcStatus.SUCCESS);
      const [received] = receiver.poll();
      assert.ok(received);
      assert.deepEqual(
        [received.status, received.opcode, received.qpn, received.srqn, received.byteLength],
        [WcStatus.SUCCESS, WcOpcode.RECV, target, queues[i]!.srqn, 4],
      );
      assert.deepEqual(receiver.memory.subarray(3 * 256, 3 * 256 + 4), text(`to ${i}`));
    }
  });

  it('RDMA goes to the memory of the queue that is named, and of no other', () => {
    const [sender, one, two] = [started(), started(), started()];
    const shared = key();
    sender.open();
    one.open(shared);
    two.open(shared);
    const queues = [one.srq(), two.srq()] as const;
    const initiator = sender.initiator();
    const target = one.target(initiator);
    sender.attach(initiator, target);
    const remote = { address: two.region.iova, rkey: two.region.rkey };
    sender.send(initiator, queues[1].srqn, WrOpcode.RDMA_WRITE, { inline: text('there'), remote });
    assert.equal(sender.poll()[0]?.status, WcStatus.SUCCESS);
    assert.deepEqual(two.memory.subarray(0, 5), text('there'));
    sender.send(initiator, queues[0].srqn, WrOpcode.RDMA_WRITE, { inline: text('x'), remote });
    assert.equal(sender.poll()[0]?.status, WcStatus.REM_ACCESS_ERR);
  });

  it('domains are found by key from another process, made, or refused', () => {
    const [a, b] = [started(), started()];
    const shared = key();
    assert.throws(() => b.open(shared, 'existing'), refused('ENODEV', /there is no XRC domain/));
    a.open(shared, 'exclusive');
    assert.throws(() => b.open(shared, 'exclusive'), refused('EINVAL', /exists already/));
    b.open(shared, 'existing');
    assert.equal(fakeVerbs().objects('xrcd'), 2);
    a.domain.close();
    assert.throws(() => a.open(shared, 'exclusive'), refused('EINVAL', /exists already/));
    b.domain.close();
    a.open(shared, 'exclusive');
    b.open(undefined);
    assert.throws(() => b.open(undefined, 'existing'), refused('ENODEV'));
  });

  it('a target of another process is registered with by number, and outlives its creator', () => {
    const [sender, creator, other, stranger] = [started(), started(), started(), started()];
    const shared = key();
    sender.open();
    for (const process of [creator, other]) process.open(shared);
    stranger.open(key());
    const srq = other.srq();
    const initiator = sender.initiator();
    const target = creator.target(initiator);
    sender.attach(initiator, target);
    assert.throws(
      () => stranger.domain.register(target, () => undefined),
      refused('EINVAL', /target/),
    );
    assert.equal(other.domain.query(target).state, QpState.RTR);
    other.domain.register(
      target,
      other.hear(() => target),
    );
    other.domain.register(
      target,
      other.hear(() => target),
    );
    assert.deepEqual(other.domain.targets, [target]);
    creator.domain.unregister(target);
    creator.domain.close();
    other.receive(srq, 0);
    sender.send(initiator, srq.srqn, WrOpcode.SEND, { inline: text('still') });
    assert.equal(other.poll()[0]?.status, WcStatus.SUCCESS);
    other.domain.unregister(target);
    assert.throws(() => other.domain.query(target), refused('EINVAL'));
  });

  it('an event of a target goes to every process that has it, once', async () => {
    const [sender, creator, other] = [started(), started(), started()];
    const shared = key();
    sender.open();
    for (const process of [creator, other]) process.open(shared);
    const initiator = sender.initiator();
    const target = creator.target(initiator);
    sender.attach(initiator, target);
    other.domain.register(
      target,
      other.hear(() => target),
    );
    // A queue that is none.
    sender.send(initiator, 0xabcdef, WrOpcode.SEND, { inline: text('?') });
    assert.equal(sender.poll()[0]?.status, WcStatus.REM_INV_REQ_ERR);
    for (let i = 0; i < 200 && other.events.length === 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    assert.deepEqual(creator.events, other.events);
    assert.ok(other.events.includes(`${target}:${AsyncEventType.QP_REQ_ERR}`), other.events.join());
    assert.equal(new Set(other.events).size, other.events.length);
  });

  it('refuses to close what is in use, in the module and in the library', () => {
    const a = started();
    a.open();
    const [srq, initiator] = [a.srq(), a.initiator()];
    assert.throws(() => a.domain.close(), refused('EBUSY', /1 shared/));
    assert.throws(() => a.cq.destroy(), refused('EBUSY'));
    const handle = a.device.createXrcDomain();
    handle.destroy();
    srq.destroy();
    initiator.destroy();
    a.domain.close();
  });

  it('names the attribute that a target lacks, and leaves nothing behind', () => {
    const a = started();
    a.open();
    const before = fakeVerbs().objects('qp');
    assert.throws(
      () =>
        a.domain.createTarget({
          attributes: { accessFlags: 0, pkeyIndex: 0, portNumber: 1 },
          owner: 'consumer',
          onEvent: () => undefined,
        }),
      refused('EINVAL', /addressVector/),
    );
    assert.equal(fakeVerbs().objects('qp'), before);
  });

  it('every call that fails is an error of its name, and nothing is left', () => {
    const a = started();
    const failing: [string, number, string, () => unknown][] = [
      ['ibv_open_xrcd', 12, 'ENOMEM', () => a.device.createXrcDomain()],
      [
        'ibv_open_xrcd',
        95,
        'EOPNOTSUPP',
        () => a.device.createXrcDomain({ key: key(), mode: 'create' }),
      ],
      ['ibv_create_srq_ex', 12, 'ENOMEM', () => a.srq()],
      ['ibv_get_srq_num', 22, 'EINVAL', () => a.srq()],
      ['ibv_create_qp_ex', 12, 'ENOMEM', () => a.initiator()],
      ['ibv_create_qp_ex', 12, 'ENOMEM', () => a.target(a.initiator())],
    ];
    a.open(key());
    const initiator = a.initiator();
    for (const [call, errno, code, act] of failing) {
      const nth =
        call === 'ibv_create_qp_ex' && code === 'ENOMEM' && act === failing[5]?.[3] ? 2 : 1;
      const before = fakeVerbs().objects();
      fakeVerbs().inject(call, nth, errno);
      assert.throws(act, refused(code, /ibv_/));
      if (nth === 1) assert.equal(fakeVerbs().objects(), before, call);
    }
    const target = a.target(initiator);
    const other = started();
    other.open(a.domain.key);
    fakeVerbs().inject('ibv_open_qp', 1, 12);
    assert.throws(() => other.domain.query(target), refused('ENOMEM', /ibv_open_qp/));
    const handle = a.device.createXrcDomain();
    fakeVerbs().inject('ibv_close_xrcd', 1, 16);
    assert.throws(() => handle.destroy(), refused('EBUSY', /ibv_close_xrcd/));
    handle.destroy();
  });

  it('a device without XRC says so, with its name', () => {
    fakeVerbs().setFeatures('fake0', Feature.ALL & ~Feature.XRC);
    const a = started();
    assert.equal(a.device.capabilities.has('xrc'), false);
    assert.throws(() => a.open(), refused('EOPNOTSUPP', /fake0/));
    assert.throws(() => a.device.createXrcDomain(), refused('EOPNOTSUPP', /fake0/));
  });
});

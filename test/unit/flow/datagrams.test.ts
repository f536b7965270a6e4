import assert from 'node:assert/strict';
import { type Datagrams, datagrams } from '../../../core/flow/index.js';
import {
  bytesOf,
  CLIENT,
  failureOf,
  type FlowWorld,
  flowWorld,
  leftOf,
  NOTHING_LEFT,
  PORT,
  SERVER,
  textOf,
} from '../../support/flow-scene.js';

describe('flow: datagrams', () => {
  let world: FlowWorld;
  let near: Datagrams;
  let far: Datagrams;
  beforeEach(async () => {
    world = await flowWorld();
    [near, far] = await Promise.all([datagrams(world.client), datagrams(world.server)]);
  });
  afterEach(() => world.close());

  it('go to a service that is asked for, and are answered by their source', async () => {
    far.serve({ port: PORT, answer: () => ({ privateData: bytesOf('here') }) });
    const to = await near.resolve({ address: SERVER, port: PORT });
    assert.equal(textOf(to.privateData.subarray(0, 4)), 'here');
    await near.send(bytesOf('question'), to, { immediate: 7 });
    const question = await far.receive();
    assert.deepEqual([textOf(question.bytes), question.immediate], ['question', 7]);
    assert.equal(question.source.address, CLIENT);
    await far.send(bytesOf('answer'), question.source);
    const answer = await near.receive();
    assert.deepEqual([textOf(answer.bytes), answer.immediate], ['answer', undefined]);
  });

  it('come from and go to memory without a copy, where asked to', async () => {
    const lending = await datagrams(world.server, { receives: { buffers: 1, lend: true } });
    const to = { address: SERVER, qpn: lending.qpn };
    const memory = world.client.allocate(64, { pz: near.ep.pz });
    memory.bytes.fill(5);
    await near.send(memory.segment(0, 3), to);
    const datagram = await lending.receive();
    assert.deepEqual([...datagram.bytes], [5, 5, 5]);
    await near.send(bytesOf('lost: no receive is posted'), to);
    assert.equal((await failureOf(lending.receive({ timeoutMs: 10 }))).code, 'DAT_TIMEOUT_EXPIRED');
    datagram.release();
    assert.throws(() => datagram.bytes, { code: 'DAT_INVALID_STATE' });
    await near.send(bytesOf('next'), to);
    assert.equal(textOf((await lending.receive()).bytes), 'next');
  });

  it('are refused when they are too long, with both sizes', async () => {
    const most = near.maxDatagramBytes;
    const to = { address: SERVER, qpn: far.qpn };
    const error = await failureOf(near.send(new Uint8Array(most + 1), to));
    assert.equal(error.code, 'DAT_LENGTH_ERROR');
    assert.match(error.message, new RegExp(`${most + 1} bytes: maxDatagramBytes is ${most}`));
    await near.send(new Uint8Array(most), to);
    assert.equal((await far.receive()).lengthBytes, most);
  });

  it('wait for their turn, in order, and are iterated until the close', async () => {
    const few = await datagrams(world.client, { requests: 2 });
    const to = { address: SERVER, qpn: far.qpn };
    await Promise.all(Array.from({ length: 20 }, (_, i) => few.send(Uint8Array.of(i), to)));
    const values: (number | undefined)[] = [];
    for await (const { bytes } of far) {
      values.push(bytes[0]);
      if (values.length === 20) void far.close();
    }
    assert.deepEqual(
      values,
      Array.from({ length: 20 }, (_, i) => i),
    );
  });

  it('keep address handles for some peers, and not for all that there have been', async () => {
    for (let qpn = 1000; qpn < 1600; qpn++) {
      await near.send(bytesOf('x'), { address: SERVER, qpn });
    }
    await near.send(bytesOf('still'), { address: SERVER, qpn: far.qpn });
    assert.equal(textOf((await far.receive()).bytes), 'still');
    assert.ok(near['handles'].size <= 256);
  });

  it('end with this side: what waits, what is asked for, and what has been made', async () => {
    const waiting = failureOf(far.receive());
    await far.close();
    await far.close();
    assert.equal((await waiting).code, 'DAT_CONN_CLOSED');
    const to = { address: CLIENT, qpn: near.qpn };
    assert.equal((await failureOf(far.send(bytesOf('x'), to))).code, 'DAT_CONN_CLOSED');
    const resolving = far.resolve({ address: CLIENT, port: PORT });
    assert.equal((await failureOf(resolving)).code, 'DAT_CONN_CLOSED');
    assert.equal(leftOf(world.server), NOTHING_LEFT);
  });

  it('end with their adapter, or its device', async () => {
    const waiting = [failureOf(far.receive()), failureOf(near.receive())];
    const broken = failureOf(near.closed);
    const { closed } = far;
    await world.server.close();
    world.fabric.node(CLIENT)?.remove();
    const codes = (await Promise.all(waiting)).map(({ code }) => code);
    assert.deepEqual(codes, ['DAT_CONN_CLOSED', 'DAT_CONN_BROKEN']);
    await closed;
    await far.closed;
    assert.equal((await broken).code, 'DAT_CONN_BROKEN');
    assert.equal((await failureOf(near.closed)).operation, 'datagrams.closed');
  });

  it('say why a service is not there', async () => {
    const refused = await failureOf(near.resolve({ address: SERVER, port: PORT }));
    assert.equal(refused.code, 'DAT_CONN_QUAL_UNAVAILABLE');
    world.fabric.partition([CLIENT], [SERVER]);
    const late = near.resolve({ address: SERVER, port: PORT, timeoutMs: 10 });
    assert.equal((await failureOf(late)).code, 'DAT_TIMEOUT_EXPIRED');
  });

  it('refuse what cannot be', async () => {
    const to = { address: SERVER, qpn: far.qpn };
    const refused = async (promise: Promise<unknown>, message: RegExp): Promise<void> =>
      assert.match((await failureOf(promise)).message, message);
    await refused(near.send('text' as never, to), /data is "text"/);
    await refused(near.send(bytesOf('x'), { ...to, qpn: 1 }), /qpn is 1/);
    await refused(near.send(bytesOf('x'), null as never), /to is null/);
    await refused(near.send(bytesOf('x'), to, { immediate: -1 }), /immediate is -1/);
    await refused(near.resolve({ address: SERVER, port: 0 }), /port is 0/);
    await refused(datagrams(world.client, { requests: 0 }), /requests is 0/);
    await refused(datagrams(world.client, { receives: { buffers: 0 } }), /receives: buffers is 0/);
    await refused(datagrams(world.client, { qkey: 5 } as never), /an option is "qkey"/);
    assert.throws(() => near.serve({ port: 0 }), { message: /port is 0/ });
  });
});

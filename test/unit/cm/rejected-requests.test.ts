/** Copies of a REQ that has been rejected: the consumer has been asked once, and answered. */
import assert from 'node:assert/strict';
import { type CmRequest, gidFromIp } from '../../../core/spi/index.js';
import { type Asker, AnsweredRequests } from '../../../plugins/cm/messages/answered-requests.js';
import { rejOf } from '../../../plugins/cm/messages/rej.js';
import { emitCmMad, parseCmMad } from '../../../plugins/cm/wire/message.js';
import { CmPair, messageName, text, textOf, typesOf } from '../../support/cm-pair.js';

const SECOND = 1_000_000;
const refuse = (request: CmRequest): void =>
  request.reject({ reason: 28, privateData: text('not today') });

/** The first REQ of the pair arrives once more, or one that differs from it. */
function copyReq(pair: CmPair, change: { commId?: number; transactionIdLo?: number } = {}): void {
  const parcel = pair.network.carried.find((each) => messageName(each) === 'REQ')!;
  const mad = parseCmMad(parcel.data)!;
  assert.equal(mad.message.name, 'REQ');
  const localCommId = change.commId ?? mad.message.body.localCommId;
  const data = emitCmMad({
    ...mad,
    transactionIdLo: change.transactionIdLo ?? mad.transactionIdLo,
    message: { name: 'REQ', body: { ...mad.message.body, localCommId } },
  });
  pair.b.device.receive(data, pair.a.device.gids[0]!, parcel.destination);
}

describe('CM: a REQ that comes again after its REJ', () => {
  it('has the same REJ when the copy crossed it', async () => {
    const pair = new CmPair();
    pair.listen(refuse);
    pair.tamper('REQ', 1, [10, 5000]);
    const { events } = pair.connect();
    await pair.world.runFor(10_000);
    assert.equal(pair.requests.length, 1);
    assert.deepEqual(pair.messages, ['REQ', 'REJ', 'REJ']);
    const [first, second] = pair.bodies('REJ');
    assert.deepEqual(second, first);
    assert.equal(pair.b.cm.counters.rejectionsRepeated, 1);
    assert.deepEqual(typesOf(events), ['rejected']);
    assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
  });

  it('has it when the REJ was lost', async () => {
    const pair = new CmPair();
    pair.listen(refuse);
    for (let lost = 1; lost <= 3; lost++) pair.tamper('REJ', lost, []);
    const { events } = pair.connect();
    await pair.world.run();
    assert.equal(pair.requests.length, 1);
    assert.equal(pair.bodies('REQ').length, 4);
    const [event] = events;
    assert.ok(event?.type === 'rejected' && event.consumer);
    assert.equal(textOf(event.privateData), 'not today');
  });

  it('has it until 8.6 s after the last copy, and is a new one then', async () => {
    const pair = new CmPair();
    pair.listen(refuse);
    pair.connect();
    await pair.world.run();
    for (let i = 0; i < 3; i++) {
      await pair.world.runFor(8.5 * SECOND);
      copyReq(pair);
    }
    await pair.world.runFor(8.7 * SECOND);
    assert.equal(pair.requests.length, 1);
    copyReq(pair);
    await pair.world.runFor(1000);
    assert.equal(pair.requests.length, 2);
  });

  it('has it after an MRA too, which lets the peer wait longer', async () => {
    const pair = new CmPair();
    pair.listen(() => undefined);
    pair.tamper('REJ', 1, []);
    const { events } = pair.connect();
    await pair.world.runFor(0.6 * SECOND);
    refuse(pair.requests[0]!);
    await pair.world.run();
    assert.deepEqual(pair.messages, ['REQ', 'REQ', 'MRA', 'REJ', 'REQ', 'REJ']);
    assert.equal(pair.requests.length, 1);
    const [first, second] = pair.bodies('REJ');
    assert.deepEqual(second, first);
    assert.deepEqual(typesOf(events), ['rejected']);
  });

  it('has it though somebody listens now', async () => {
    const pair = new CmPair();
    pair.connect();
    await pair.world.run();
    pair.listen(refuse);
    copyReq(pair);
    await pair.world.run();
    assert.equal(pair.requests.length, 0);
    assert.deepEqual(
      pair.bodies('REJ').map(({ reason }) => reason),
      [8, 8],
    );
    assert.equal(pair.b.cm.counters.requestsRejected, 1);
  });

  it('is another request under another id, or in another transaction', async () => {
    const pair = new CmPair();
    pair.listen(refuse);
    pair.connect();
    await pair.world.run();
    copyReq(pair, { commId: 4711 });
    await pair.world.runFor(1000);
    copyReq(pair, { transactionIdLo: 4711 });
    await pair.world.runFor(1000);
    assert.equal(pair.requests.length, 3);
    assert.equal(pair.b.cm.counters.rejectionsRepeated, 0);
  });
});

describe('The rejected requests', () => {
  const asker = (commId: number, ip = '10.0.0.1'): Asker => ({
    commId,
    guid: 1n,
    gid: gidFromIp(ip),
    transactionId: 0x1_0000_0002n,
  });
  const rej = rejOf({ localCommId: 0, remoteCommId: 1, messageRejected: 0, reason: 28 });

  it('are bounded: the one that came longest ago is forgotten', () => {
    const rejected = new AnsweredRequests(3);
    for (const id of [1, 2, 3]) rejected.add(asker(id), rej, id, 100);
    assert.equal(rejected.find(asker(1), 4), rej, 'comes again');
    rejected.add(asker(4), rej, 5, 100);
    assert.equal(rejected.size, 3);
    assert.equal(rejected.find(asker(2), 6), undefined);
    for (const id of [1, 3, 4]) assert.equal(rejected.find(asker(id), 6), rej);
  });

  it('are forgotten when their time is over, and make room', () => {
    const rejected = new AnsweredRequests(8);
    for (const id of [1, 2, 3]) rejected.add(asker(id), rej, id, 100);
    rejected.add(asker(4), rej, 102, 100);
    assert.equal(rejected.size, 2);
    assert.equal(rejected.find(asker(3), 103), undefined);
    assert.equal(rejected.find(asker(4), 103), rej);
  });

  it('belong to the address that asked', () => {
    const rejected = new AnsweredRequests(8);
    rejected.add(asker(1), rej, 0, 100);
    assert.equal(rejected.find(asker(1, '10.0.0.9'), 1), undefined);
  });
});

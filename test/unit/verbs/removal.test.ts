// A device that is unplugged, or whose link goes down, in the middle of traffic: every endpoint is
// told once, the adapter's own stream says so, nothing waits for ever, closing works, and the
// connections of other devices carry on.

import assert from 'node:assert/strict';
import {
  DatError,
  type DatEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  openIa,
  RemoteSegment,
} from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { CmEventType } from '../../../providers/verbs/addon/rdmacm.js';
import { CM_LIBRARY, loadCmFake } from '../../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../../fake-verbs/control.js';
import { leftovers } from '../../fake-verbs/life.js';
import { patience } from '../../support/patience.js';

const fake = fakeVerbs();
const cm = loadCmFake();
const ADDRESSES = {
  fake0: '198.51.100.1',
  fake1: '198.51.100.2',
  fake2: '198.51.100.3',
} as const;
type Name = keyof typeof ADDRESSES;
const CONN_QUAL = 7800;
const DEPTH = 8;
const PACE_US = 100;
/** About 0.1 s (IBTA 11.2.1.2: 4.096 us * 2^12, seven times): a peer that is gone is known soon. */
const ATTRIBUTES = { transport: { ackTimeout: 12, retryCount: 7 } };
const BYTES = 4096;

/** An adapter and what has been told on its asynchronous stream. */
interface Adapter {
  readonly name: Name;
  readonly ia: Ia;
  readonly told: DatEvent[];
}

/** Of the test that runs: what a failed one leaves open is closed, and no other test meets it. */
const opened: Ia[] = [];

async function open(name: Name): Promise<Adapter> {
  cm.addAddress(ADDRESSES[name], name);
  const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
  const ia = await openIa(verbs({ device: name, libraries }));
  opened.push(ia);
  const told: DatEvent[] = [];
  ia.async$.subscribe((event) => told.push(event));
  return { name, ia, told };
}

/** One end of a connection: what it has met, and a pump that writes without end. */
class End {
  readonly evd: Evd;
  readonly ep: Ep;
  readonly lmr: Lmr;
  readonly connection: string[] = [];
  writes = 0;
  failed = 0;
  remote: RemoteSegment | undefined;

  constructor(readonly adapter: Adapter) {
    const { ia } = adapter;
    const pz = ia.createPz();
    this.evd = ia.createEvd({ qlen: 256 });
    const { evd } = this;
    const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
    this.ep = ia.createEndpoint({ pz, ...evds, attributes: ATTRIBUTES });
    this.lmr = ia.allocate(BYTES, { pz, privileges: MemPrivileges.ALL });
    for (let i = 0; i < DEPTH; i++) this.ep.postRecv(this.lmr.segment(0, 64), i);
    evd.events$.subscribe((event) => this.take(event));
  }

  start({ lmr }: End): void {
    this.remote = new RemoteSegment({ address: lmr.address, rmrContext: lmr.rmrContext ?? 0 });
    for (let i = 0; i < DEPTH; i++) this.write();
  }

  private write(): void {
    if (this.remote === undefined || this.ep.state !== 'CONNECTED') return;
    try {
      this.ep.postRdmaWrite(this.lmr.segment(0, 1024), this.writes, this.remote);
    } catch (error) {
      // The device may be gone, and the endpoint not know yet.
      if (!DatError.isDatError(error)) throw error;
    }
  }

  private take(event: DatEvent): void {
    if (event.type === 'connection') {
      this.connection.push(nameOf(DatEventNumber, event.number));
    } else if (event.type === 'dto') {
      if (event.status === 0) this.writes++;
      else this.failed++;
      if (event.status === 0) this.write();
    } else if (event.type === 'connection-request') {
      event.cr.accept(this.ep);
    }
  }
}

async function until(condition: () => boolean, what: () => string): Promise<void> {
  const since = performance.now();
  while (!condition()) {
    assert.ok(performance.now() - since < patience(60_000), what());
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

let conns = 0;

/** Connected both ways, and both write. */
async function connect(from: Adapter, to: Adapter): Promise<[End, End]> {
  const ends: [End, End] = [new End(from), new End(to)];
  const [here, there] = ends;
  const connQual = CONN_QUAL + conns++;
  const psp = to.ia.createPsp({ connQual, evd: there.evd });
  here.ep.connect({ address: ADDRESSES[to.name], connQual });
  await until(
    () => ends.every(({ connection }) => connection.length > 0),
    () => 'never connected',
  );
  // Hardware that never rests would leave a busy machine no time for its timers.
  fake.setPace(PACE_US);
  psp.free();
  here.start(there);
  there.start(here);
  await until(
    () => ends.every(({ writes }) => writes > 2 * DEPTH),
    () => `no traffic: ${ends.map(({ connection }) => connection.join()).join(' / ')}`,
  );
  return ends;
}

const asyncNames = ({ told }: Adapter): string[] =>
  told.flatMap((event) =>
    event.type === 'async-error' ? [nameOf(DatEventNumber, event.number)] : [],
  );

describe('verbs: a device that goes, under load', function () {
  this.timeout(240_000);
  let before: string[];
  beforeEach(() => {
    fake.restore();
    cm.reset();
    fake.setMode(Mode.THREAD);
    fake.addDevice('fake2', 1);
    fake.setGid('fake2', 1, 2, Buffer.from('00000000000000000000ffffc6336403', 'hex'), 2);
    before = leftovers();
  });
  afterEach(async () => {
    for (const ia of opened.splice(0)) await ia.close('abrupt');
    fake.restore();
    cm.reset();
    fake.setMode(Mode.IMMEDIATE);
  });

  for (const flush of [0, 1] as const) {
    const how = flush === 1 ? 'whose driver flushes first' : 'that does nothing any more';
    it(`removal of a device ${how}`, async () => {
      const [gone, peer, other] = [await open('fake0'), await open('fake1'), await open('fake2')];
      const broken = [
        await connect(gone, peer),
        await connect(gone, peer),
        await connect(peer, gone),
      ];
      const kept = await connect(peer, other);
      const idle = new End(gone);

      fake.removeDevice('fake0', flush);
      cm.raise(CmEventType.DEVICE_REMOVAL, 0, 'fake0');
      await until(
        () => broken.every((ends) => ends.every(({ connection }) => connection.length > 1)),
        () => JSON.stringify(broken.map((ends) => ends.map(({ connection }) => connection))),
      );
      for (const end of broken.flat()) {
        assert.equal(end.connection.length, 2, end.connection.join());
        assert.match(end.connection[1] ?? '', /BROKEN|DISCONNECTED/);
        assert.equal(end.ep.state, 'DISCONNECTED');
      }
      assert.deepEqual(idle.connection, []);
      assert.ok(
        gone.told.some((event) => event.type === 'async-error' && event.object === gone.ia),
      );
      assert.throws(() => gone.ia.createPz(), DatError.isDatError);

      const writes = kept.map((end) => end.writes);
      await until(
        () => kept.every((end, i) => end.writes > (writes[i] ?? 0) + 100),
        () => 'the other device stands still',
      );
      assert.deepEqual(asyncNames(other), []);
      for (const { ia } of [gone, peer, other]) await ia.close();
      assert.deepEqual(leftovers(), before);
    });
  }

  it('removal of a device of which rdma_cm alone tells: its queue pairs work on', async () => {
    const [gone, idle, peer] = [await open('fake0'), await open('fake2'), await open('fake1')];
    const ends = await connect(gone, peer);
    for (const { name } of [gone, idle]) cm.raise(CmEventType.DEVICE_REMOVAL, 0, name);
    await until(
      () =>
        ends.every(({ connection }) => connection.length > 1) &&
        [gone, idle].every(({ told }) => told.length > 0),
      () => JSON.stringify(ends.map(({ connection }) => connection)),
    );
    for (const end of ends) {
      assert.match(end.connection.slice(1).join(), /^(BROKEN|DISCONNECTED)$/);
    }
    assert.equal(asyncNames(gone)[0], 'ASYNC_IA_CATASTROPHIC');
    assert.deepEqual(asyncNames(idle), ['ASYNC_IA_CATASTROPHIC']);
    assert.deepEqual(asyncNames(peer), []);
    for (const { ia } of [gone, idle, peer]) await ia.close();
    assert.deepEqual(leftovers(), before);
  });

  it('a device that comes back is opened again, and connects', async () => {
    const [gone, peer] = [await open('fake0'), await open('fake1')];
    await connect(gone, peer);
    fake.removeDevice('fake0', 0);
    cm.raise(CmEventType.DEVICE_REMOVAL, 0, 'fake0');
    await gone.ia.close();
    await assert.rejects(open('fake0'), DatError.isDatError);
    fake.restoreDevice('fake0');
    const again = await open('fake0');
    await connect(again, peer);
    for (const { ia } of [again, peer]) await ia.close();
    assert.deepEqual(leftovers(), before);
  });

  it('a link that goes down for a moment loses nothing, and is told both times', async () => {
    const [here, there] = [await open('fake0'), await open('fake1')];
    const ends = await connect(here, there);
    for (let round = 0; round < 5; round++) {
      fake.setLink('fake0', 1, 0);
      await new Promise((resolve) => setTimeout(resolve, 5));
      fake.setLink('fake0', 1, 1);
      const writes = ends.map((end) => end.writes);
      await until(
        () => ends.every((end, i) => end.writes > (writes[i] ?? 0) + 50),
        () => `round ${round}: ${ends.map(({ connection }) => connection.join()).join(' / ')}`,
      );
    }
    assert.ok(ends.every(({ failed, connection }) => failed === 0 && connection.length === 1));
    assert.deepEqual(asyncNames(there), []);
    assert.ok(asyncNames(here).length >= 5, asyncNames(here).join());
    for (const { ia } of [here, there]) await ia.close();
    assert.deepEqual(leftovers(), before);
  });

  it('a link that is down gets no message of the CM, and connects when it is back', async () => {
    const [here, there] = [await open('fake0'), await open('fake1')];
    const ends = await connect(here, there);
    fake.setLink('fake0', 1, 0);
    await until(
      () => ends.every(({ connection }) => connection.length > 1),
      () => ends.map(({ connection }) => connection.join()).join(' / '),
    );
    const [mine] = ends;
    mine.ep.free();
    // One DREQ: of the other side, whose link is up.
    assert.equal(cm.calls('rdma_disconnect'), 1);
    const held = cm.calls('rdma_destroy_id');
    fake.setLink('fake0', 1, 1);
    await until(
      () => cm.calls('rdma_disconnect') >= 2,
      () => 'nothing is sent though the link is up',
    );
    await connect(here, there);
    for (const { ia } of [here, there]) await ia.close();
    assert.ok(cm.calls('rdma_destroy_id') > held);
    assert.deepEqual(leftovers(), before);
  });

  it('a link that is down gets no answer to a request to disconnect until it is back', async () => {
    const [here, there] = [await open('fake0'), await open('fake1')];
    const ends = await connect(here, there);
    const [mine, theirs] = ends;
    fake.setLink('fake0', 1, 0);
    // The request comes before the many repetitions that say that the link is down.
    theirs.ep.disconnect();
    await until(
      () => ends.every(({ connection }) => connection.length > 1),
      () => ends.map(({ connection }) => connection.join()).join(' / '),
    );
    assert.deepEqual(mine.connection, ['ESTABLISHED', 'DISCONNECTED']);
    assert.equal(cm.calls('rdma_disconnect'), 1);
    fake.setLink('fake0', 1, 1);
    await until(
      () => cm.calls('rdma_disconnect') >= 2,
      () => 'no answer is sent though the link is up',
    );
    for (const { ia } of [here, there]) await ia.close();
    assert.deepEqual(leftovers(), before);
  });

  it('a link that stays down breaks what is under way, once, and closing works', async () => {
    const [here, there, other] = [await open('fake0'), await open('fake1'), await open('fake2')];
    const ends = await connect(here, there);
    const kept = await connect(there, other);
    fake.setLink('fake0', 1, 0);
    await until(
      () => ends.every(({ connection }) => connection.length > 1),
      () => ends.map(({ connection }) => connection.join()).join(' / '),
    );
    for (const { connection, failed } of ends) {
      assert.match(connection.slice(1).join(), /^(BROKEN|DISCONNECTED)$/);
      assert.ok(failed > 0);
    }
    const writes = kept.map((end) => end.writes);
    await until(
      () => kept.every((end, i) => end.writes > (writes[i] ?? 0) + 50),
      () => 'the other connection stands still',
    );
    for (const { ia } of [here, there, other]) await ia.close();
    assert.deepEqual(leftovers(), before);
  });
});

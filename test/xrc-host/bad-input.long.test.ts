/**
 * The host of an XRC domain is said what none of ours says: bytes of chance, messages that differ
 * from good ones, descriptors of other things, rings with rubbish in them. That ends, or refuses,
 * the caller that says it; the others carry on.
 */
import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import { gidFromIp, RQE, SGE } from '../../core/spi/index.js';
import type { UnixSocket } from '../../providers/host/index.js';
import { loadNativeAddon, type NativeAddon } from '../../providers/softroce/port/native-addon.js';
import {
  decode,
  encode,
  MAX_MESSAGE_BYTES,
  type Request,
} from '../../providers/softroce/xrc-host/messages.js';
import { queueRings, queueRingsBytes } from '../../providers/softroce/xrc-host/rings.js';
import { killAll } from '../slots/programs.js';
import { patience, paused } from '../support/patience.js';
import { attached, hostNameOf, hostsOf, type Reach, World } from './world.js';

const SEED = 31;
/** At a time: as many as a listener lets wait. */
const BATCH = 32;
const WAIT_MS = 20_000;
const OPEN: Request = { op: 'open', mode: 'create' };
const MEMORY_BYTES = 4096;
const MAX_WR = 16;
const MAX_SGE = 4;

const GOOD: readonly Request[] = [
  OPEN,
  {
    op: 'addRegion',
    zone: 1,
    key: 1,
    access: 7,
    iova: 5n,
    memoryBytes: 4096,
    offset: 0,
    lengthBytes: 64,
  },
  { op: 'removeRegion', key: 1 },
  { op: 'addQueue', zone: 1, srqn: 0xffff01, maxWr: MAX_WR, maxSge: MAX_SGE },
  { op: 'removeQueue', srqn: 0xffff01 },
  { op: 'failQueue', srqn: 0xffff01 },
  { op: 'limit', srqn: 0xffff01, limit: 3 },
  { op: 'createTarget', owner: 'consumer' },
  { op: 'hold', qpn: 0xffff02 },
  { op: 'release', qpn: 0xffff02 },
  { op: 'modify', qpn: 0xffff02, attributes: { state: 1, portNumber: 1 } },
  { op: 'query', qpn: 0xffff02 },
];

describe('the host of an XRC domain is said what none of ours says', function () {
  this.timeout(300_000);
  const world = new World(99);
  const random = new SeededRandom(SEED);
  const addon = loadNativeAddon() as NativeAddon;
  let reach: Reach;
  let name: string;
  let sent = 0;

  before(async () => {
    reach = await world.reach();
    await reach.second.ask(`register ${reach.target}`);
    name = hostNameOf(reach.address);
  });
  afterEach(async () => {
    const { first, sender, srqns } = reach;
    assert.equal(await sender.ask(`send ${srqns[0]} still${++sent}`), 'SUCCESS');
    assert.match(await first.ask(`received ${sent}`), new RegExp(`still${sent}$`));
    assert.equal(await first.ask('told 0'), '');
    assert.equal(hostsOf(reach.address).length, 1);
  });
  after(async () => {
    await killAll();
    world.end();
  });

  /** @returns what the host answers, and null when it has ended the connection */
  async function reply(socket: UnixSocket): Promise<ReturnType<typeof decode> | null> {
    const endMs = performance.now() + patience(WAIT_MS);
    for (;;) {
      const message = socket.receive();
      if (message === null) return null;
      if (message !== undefined) return decode(message.bytes);
      assert.ok(performance.now() < endMs, 'the host says nothing');
      await paused(0);
    }
  }

  const randomBytes = (length: number): Uint8Array =>
    Uint8Array.from({ length }, () => random.between(0, 255));

  async function refused(message: Uint8Array, opened: boolean): Promise<void> {
    const socket = addon.connectUnix(name);
    if (opened) socket.send(encode({ ...OPEN, id: 1 }), []);
    socket.send(message, []);
    if (opened) assert.deepEqual(await reply(socket), { answer: 1 });
    assert.equal(await reply(socket), null);
    socket.close();
  }

  async function inBatches(count: number, one: () => Promise<void>): Promise<void> {
    for (let done = 0; done < count; done += BATCH) {
      await Promise.all(Array.from({ length: Math.min(BATCH, count - done) }, one));
    }
  }

  it('4,000 messages of chance, of 1 byte to the longest: each ends its caller', () =>
    inBatches(4000, () =>
      refused(randomBytes(random.between(1, 64) ** 2), random.between(0, 1) === 0),
    ));

  it('4,000 that differ from good ones in some bytes: an answer, or the end', () =>
    inBatches(4000, async () => {
      const request = GOOD[random.between(0, GOOD.length - 1)]!;
      const bytes = encode({ ...request, id: 2 });
      for (let changes = random.between(1, 4); changes > 0; changes--) {
        bytes[random.between(0, bytes.length - 1)] = random.between(32, 126);
      }
      const socket = addon.connectUnix(name);
      socket.send(encode({ ...OPEN, id: 1 }), []);
      socket.send(bytes, []);
      assert.deepEqual(await reply(socket), { answer: 1 });
      const said = await reply(socket);
      assert.ok(said === null || 'answer' in said);
      socket.close();
    }));

  const HUGE: readonly (readonly [string, string])[] = [
    ['nested arrays', '['.repeat(MAX_MESSAGE_BYTES)],
    ['arrays that end', '['.repeat(2048) + ']'.repeat(2048)],
    ['a long number', '1'.repeat(MAX_MESSAGE_BYTES)],
    ['another version’s question', '{"op":"migrate","id":1}'],
    ['a name that every object has', '{"op":"constructor","id":1}'],
    ['what a host says', '{"note":"targetEvent","qpn":1,"event":1}'],
    ['an answer', '{"answer":1}'],
    ['no number', '{"op":"createTarget"}'],
    ['nothing', 'null'],
  ];
  for (const [what, text] of HUGE) {
    it(`${what}: its end`, () => refused(new TextEncoder().encode(text), true));
  }

  it('descriptors of other things, and none: refused, and the caller may go on', async () => {
    const region = (memoryBytes: number): Request => {
      return { ...(GOOD[1] as Request & { op: 'addRegion' }), memoryBytes };
    };
    const queue = GOOD[3]!;
    const small = addon.createSharedTable('small', MEMORY_BYTES);
    const file = openSync('/proc/self/status', 'r');
    const nothing = openSync('/dev/null', 'r+');
    const socket = addon.connectUnix(name);
    let id = 1;
    const ask = async (request: Request, ...descriptors: number[]): Promise<unknown> => {
      socket.send(encode({ ...request, id: ++id }), descriptors);
      return reply(socket);
    };
    assert.deepEqual(await ask(OPEN), { answer: 2 });
    const bad: readonly (readonly [Request, number[]])[] = [
      [queue, []],
      [queue, [file]],
      [queue, [nothing]],
      [queue, [small.descriptor]],
      [region(4096), []],
      [region(4096), [file]],
      [region(4095), [small.descriptor]],
      [region(2 ** 46), [small.descriptor]],
      [region(Number.MAX_SAFE_INTEGER), [small.descriptor]],
      [{ ...region(4096), offset: 4040 } as Request, [small.descriptor]],
      [{ ...region(4096), access: 0xffffffff } as Request, [small.descriptor]],
      [{ ...queue, maxWr: 0 } as Request, [small.descriptor]],
      [{ ...queue, maxWr: 0xffffff, maxSge: 0xffffff } as Request, [small.descriptor]],
      [{ ...queue, srqn: 0 } as Request, [small.descriptor]],
    ];
    for (const [request, descriptors] of bad) {
      const said = (await ask(request, ...descriptors)) as { code?: string } | null;
      assert.ok(said?.code !== undefined, `${JSON.stringify(said)} ${descriptors.length}`);
    }
    assert.deepEqual(await ask(region(4096), small.descriptor), { answer: id });
    const again = (await ask(region(4096), small.descriptor)) as { code?: string };
    assert.equal(again.code, 'EBUSY');
    socket.close();
    closeSync(file);
    closeSync(nothing);
    addon.closeDescriptor(small.descriptor);
  });

  it('attributes of a target that are none: refused one by one', async () => {
    const socket = addon.connectUnix(name);
    socket.send(encode({ ...OPEN, id: 1 }), []);
    socket.send(encode({ op: 'createTarget', owner: 'consumer', id: 2 }), []);
    await reply(socket);
    const { value } = (await reply(socket)) as { value: number };
    const init = { state: 1, pkeyIndex: 0, portNumber: 1, accessFlags: 0 };
    const gid = gidFromIp(world.newAddress());
    const ready = {
      state: 2,
      addressVector: { gid, localGidIndex: 0 },
      pathMtuBytes: 1024,
      destinationQpn: 1,
      receivePsn: 1,
      minRnrTimer: 1,
      maxDestRdAtomic: 1,
    };
    const ask = async (attributes: object): Promise<{ code?: string }> => {
      socket.send(encode({ op: 'modify', qpn: value, attributes, id: 3 }), []);
      return (await reply(socket)) as { code?: string };
    };
    const rubbish = [null, 'text', -1, 1.5, 2 ** 40, [], {}, true];
    for (const [good, moved] of [
      [init, false],
      [ready, true],
    ] as const) {
      for (const field of Object.keys(good)) {
        for (const one of rubbish) {
          const { code } = await ask({ ...good, [field]: one });
          assert.ok(code !== undefined, `${field}: ${JSON.stringify(one)}`);
        }
      }
      if (moved) break;
      assert.equal((await ask(good)).code, undefined);
    }
    for (const bad of ['0123456789abcdef', Array(16).fill('x'), [], 5, null]) {
      const addressVector = { gid: bad, localGidIndex: 0 };
      assert.ok((await ask({ ...ready, addressVector })).code !== undefined, `gid ${String(bad)}`);
    }
    assert.equal((await ask(ready)).code, undefined);
    socket.close();
  });

  it('2,000 rings with rubbish in them: the caller is ended, or its receives fail', async () => {
    let ended = 0;
    for (let n = 0; n < 2000; n++) {
      const bytes = queueRingsBytes(MAX_WR, MAX_SGE);
      const { memory, descriptor } = addon.createSharedTable('rings', bytes);
      const words = new Uint32Array(memory);
      for (let i = random.between(1, 200); i > 0; i--) {
        const top = random.between(0, 2) === 0 ? 32 : 0xffffffff;
        words[random.between(0, words.length - 1)] = random.between(0, top);
      }
      const { submissions } = queueRings(memory, MAX_WR, MAX_SGE).receives;
      submissions.producer = (submissions.consumer + random.between(1, MAX_WR)) >>> 0;
      const socket = addon.connectUnix(name);
      socket.send(encode({ ...OPEN, id: 1 }), []);
      const srqn = 0xfe0000 + n;
      socket.send(
        encode({ op: 'addQueue', zone: 1, srqn, maxWr: MAX_WR, maxSge: MAX_SGE, id: 2 }),
        [descriptor],
      );
      try {
        socket.send(encode({ note: 'look' }), []);
        socket.send(encode({ op: 'query', qpn: 0xffffff, id: 3 }), []);
      } catch (error) {
        // The host has been quick, and ended it.
        assert.equal((error as { code?: string }).code, 'EPIPE');
      }
      for (let said = await reply(socket); ; said = await reply(socket)) {
        if (said === null) ended++;
        if (said === null || ('answer' in said && said.answer === 3)) break;
      }
      socket.close();
      addon.closeDescriptor(descriptor);
    }
    assert.ok(ended > 100, `${ended} of 2000`);
  });

  it('receives that change while they wait: their sender has an error, and no other', async () => {
    for (const [at, word] of [
      [RQE.NUM_SGE, 0xffffffff],
      [RQE.SEGMENTS + SGE.LENGTH, 0],
      [RQE.SEGMENTS + SGE.LKEY, 0xffffffff],
    ] as const) {
      const outside = world.newAddress();
      const { sender } = await attached(reach.second, reach.address, outside);
      const { memory, descriptor } = addon.createSharedTable('rings', queueRingsBytes(1, 1));
      const { slots, submissions } = queueRings(memory, 1, 1).receives;
      slots.words[slots.wordOf(0) + RQE.NUM_SGE] = 1;
      submissions.producer = 1;
      const socket = addon.connectUnix(name);
      socket.send(encode({ ...OPEN, id: 1 }), []);
      const srqn = 0xfd0000;
      socket.send(encode({ op: 'addQueue', zone: 1, srqn, maxWr: 1, maxSge: 1, id: 2 }), [
        descriptor,
      ]);
      socket.send(encode({ note: 'look' }), []);
      assert.deepEqual(await reply(socket), { answer: 1 });
      assert.deepEqual(await reply(socket), { answer: 2 });
      slots.words[slots.wordOf(0) + at] = word;
      assert.match(await sender.ask(`send ${srqn} text`), /^(REMOTE_|TRANSPORT)/);
      socket.close();
      addon.closeDescriptor(descriptor);
      await sender.kill();
      // The target that the sender had is in error: its creator hears of that.
      assert.match(await reach.second.ask('told 1'), /LAST_WQE|QP_/);
    }
  });
});

// Initiators that ask for transfers and take no part in them: they lose their sessions, and others
// are served meanwhile.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { MemoryBackend } from '../../../../../../samples/ulp/block/index.js';
import { IscsiTarget } from '../../../../../../samples/ulp/iser/index.js';
import { StallWatch } from '../../../../../../samples/ulp/iser/session/target-side/index.js';
import { longIt } from '../../../../../support/lane.js';
import { loopback } from '../../../../../support/loopback.js';
import { RawInitiator } from './raw-initiator.js';
import { TARGET, Time } from './scene.js';

const ADDRESS = loopback(98, 1);
const COMMANDS = 64;
const BLOCKS = 2048;
const TIMEOUT_MS = 3000;

describe('iSER target: initiators that stall', function () {
  this.timeout(20_000);
  let target: IscsiTarget;
  let port: number;
  let notes: string[];
  const sessions: RawInitiator[] = [];
  beforeEach(async () => {
    notes = [];
    const disk = new MemoryBackend({ sizeBytes: 64 << 20 });
    const luns = new Map([[0, disk]]);
    // Silence is asked about often: the answers must not count as progress.
    const how = { keepAliveMs: 500, transferTimeoutMs: TIMEOUT_MS };
    target = new IscsiTarget({ name: TARGET, luns, onNote: (note) => notes.push(note), ...how });
    port = Number((await target.listenTcp(ADDRESS, 0)).name.split(':')[1]);
  });
  afterEach(async () => {
    for (const { socket } of sessions.splice(0)) socket.destroy();
    await target.close(0);
  });

  async function logIn(): Promise<RawInitiator> {
    const session = await RawInitiator.logIn(port, ADDRESS, sessions.length);
    sessions.push(session);
    return session;
  }

  /** One that has nothing to do with them is served long before they lose their sessions. */
  async function serves(): Promise<void> {
    const began = performance.now();
    const innocent = await logIn();
    for (const [tag, what] of (['read', 'write'] as const).entries()) {
      innocent.command(what, tag, 1);
      if (what === 'write') {
        const asked = await innocent.until(({ type }) => type === 'r2t');
        assert.ok(asked.type === 'r2t');
        const { targetTransferTag } = asked.header;
        const values = { initiatorTaskTag: tag, targetTransferTag, final: true };
        innocent.send('dataOut', values, new Uint8Array(512));
      }
      await innocent.until(
        ({ type, header }) =>
          (type === 'scsiResponse' || type === 'dataIn') && header.initiatorTaskTag === tag,
      );
    }
    const tookMs = performance.now() - began;
    assert.ok(tookMs < TIMEOUT_MS, `${tookMs} ms`);
  }

  async function end(initiators: readonly RawInitiator[]): Promise<void> {
    await Promise.all(
      initiators.map(async ({ socket }) => {
        if (!socket.destroyed) await once(socket.resume(), 'close');
      }),
    );
    const stalled = notes.filter((note) => note.endsWith('has made no progress for 3000 ms'));
    assert.equal(stalled.length, initiators.length, notes.join('\n'));
    for (const note of stalled) assert.match(note, /^127\.[0-9.]+:[0-9]+: a transfer/);
  }

  longIt('serves others beside two that send WRITEs and no data, and ends those', async () => {
    const stalled = [await logIn(), await logIn()];
    for (const each of stalled) {
      for (let tag = 0; tag < COMMANDS; tag++) each.command('write', tag, BLOCKS);
      await each.until(({ type }) => type === 'r2t');
    }
    await serves();
    await end(stalled);
    const pings = stalled.flatMap(({ received }) =>
      received.filter(({ type }) => type === 'nopIn'),
    );
    assert.ok(pings.length > 0, 'they were asked, and answered');
  });

  it('names each initiator that resets its connection, once, and blames no program', async () => {
    const resetting = [await logIn(), await logIn(), await logIn()];
    for (const each of resetting) {
      for (let tag = 0; tag < COMMANDS; tag++) {
        each.command(tag % 2 === 0 ? 'write' : 'read', tag, BLOCKS);
      }
      await each.until(({ type }) => type === 'r2t');
      each.socket.pause();
    }
    const ports = resetting.map(({ socket }) => socket.localPort);
    for (const { socket } of resetting) socket.resetAndDestroy();
    while (target.sessionCount > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(notes.length, resetting.length, notes.join('\n'));
    for (const [at, port] of ports.entries()) {
      const note = notes.find((each) => each.includes(`:${port}: `)) ?? notes[at]!;
      assert.match(note, new RegExp(`:${port}: the session is lost: .*(ECONNRESET|EPIPE)`));
    }
  });

  longIt('serves others beside four that do not take what they read, and ends those', async () => {
    const stalled = [await logIn(), await logIn(), await logIn(), await logIn()];
    for (const each of stalled) {
      each.socket.pause();
      for (let tag = 0; tag < COMMANDS; tag++) each.command('read', tag, BLOCKS);
      // It is heard of all the time.
      const pings = setInterval(() => {
        const values = { initiatorTaskTag: 0xffff_ffff, targetTransferTag: 0xffff_ffff };
        each.send('nopOut', { ...values, immediate: true, final: true, cmdSn: each.cmdSn });
      }, 100);
      each.socket.once('close', () => clearInterval(pings));
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    await serves();
    for (const { socket } of stalled) socket.once('error', () => {});
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS * 2));
    await end(stalled);
  });
});

describe('stall watch', () => {
  const watch = (): { time: Time; pending: { is: boolean }; stalls: number[]; it: StallWatch } => {
    const [time, pending, stalls] = [new Time(), { is: false }, [] as number[]];
    const it = new StallWatch({
      alarm: time.alarm,
      timeoutMs: 1000,
      isPending: () => pending.is,
      stalled: () => void stalls.push(1),
    });
    return { time, pending, stalls, it };
  };

  it('tells of what makes no progress, between once and one and a half times the limit', () => {
    const { time, pending, stalls, it } = watch();
    it.begin();
    pending.is = true;
    time.pass(999);
    // More to do is no progress.
    it.begin();
    assert.equal(stalls.length, 0);
    time.pass(501);
    assert.equal(stalls.length, 1);
  });

  it('is silent while there is progress, and while there is nothing to do', () => {
    const { time, pending, stalls, it } = watch();
    it.begin();
    pending.is = true;
    for (let i = 0; i < 5; i++) {
      time.pass(900);
      it.moved();
    }
    pending.is = false;
    time.pass(10_000);
    assert.deepEqual([stalls.length, time.pending], [0, 0]);
    it.begin();
    pending.is = true;
    time.pass(900);
    it.stop();
    time.pass(10_000);
    assert.equal(stalls.length, 0);
  });
});

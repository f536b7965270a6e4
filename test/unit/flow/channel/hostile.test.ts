// What a peer may send: golden bytes, each field out of range, and a hundred thousand mutated
// frames. Each is either a frame that may come now, or an error with the value and the limit.
import assert from 'node:assert/strict';
import { announcementOf, readAnnouncement } from '../../../../core/flow/channel/announcement.js';
import { Credits } from '../../../../core/flow/channel/credits.js';
import { FRAME_HEADER_BYTES } from '../../../../core/flow/channel/frame.js';
import { ChannelProtocolError } from '../../../../core/flow/channel/protocol-error.js';
import { ChannelSession } from '../../../../core/flow/channel/session.js';
import { SeededRandom } from '../../../../plugins/faults/grammar/seeded-random.js';

const LIMITS = { buffers: 4, bufferBytes: 64, maxMessageBytes: 100 };
const ANNOUNCED = [
  [0x44, 0x41, 0x54, 0x63, 1, 1, 0, 4],
  [0, 0, 0, 64, 0, 0, 0, 100, 0, 0, 0, 0],
].flat();

const frame = (
  kind: number,
  updates: number,
  credits: number,
  remaining: number,
  payload: number,
): Uint8Array => {
  const data = new Uint8Array(FRAME_HEADER_BYTES + payload);
  const view = new DataView(data.buffer);
  data.set([kind, updates]);
  view.setUint16(2, credits);
  view.setUint32(4, remaining);
  return data;
};
const REST = { remainingBytes: 0 };
const [MESSAGE, ABANDON, END, CREDIT] = [1, 2, 3, 4];

describe('channel, a hostile peer', () => {
  it('announces itself with these bytes', () => {
    assert.deepEqual([...announcementOf(LIMITS)], ANNOUNCED);
    const padded = Uint8Array.from([...ANNOUNCED, ...new Array<number>(36).fill(7)]);
    assert.deepEqual(readAnnouncement(padded), { version: 1, ...LIMITS });
  });

  for (const [name, at, value, says] of [
    ['magic', 0, 0, /announcement.magic is 4281443; it must be an integer from 1145132131/],
    ['no version', 4, 0, /announcement.lowestVersion is 0; it must be an integer from 1/],
    ['versions above ours', 4, 2, /announcement.highestVersion is 1; .* from 2 to 255/],
    ['versions below ours', 5, 0, /announcement.highestVersion is 0/],
    ['one buffer', 7, 1, /announcement.buffers is 1; it must be an integer from 2 to 65535/],
    ['small buffers', 11, 15, /announcement.bufferBytes is 15; it must be an integer from 16/],
    ['huge buffers', 8, 255, /announcement.bufferBytes is 4278190144; .* to 1073741824/],
    ['no messages', 15, 0, /announcement.maxMessageBytes is 0; it must be an integer from 1/],
  ] as const) {
    it(`refuses an announcement: ${name}`, () => {
      const data = Uint8Array.from(ANNOUNCED);
      data[at] = value;
      assert.throws(() => readAnnouncement(data), { name: 'ChannelProtocolError', message: says });
    });
  }

  it('speaks with a peer that speaks later versions, too', () => {
    const data = Uint8Array.from(ANNOUNCED);
    data[5] = 9;
    assert.equal(readAnnouncement(data).version, 1);
    data[4] = 2;
    const says = /announcement.lowestVersion is 2; it must be an integer from 1 to 1/;
    assert.throws(() => readAnnouncement(data), says);
    assert.throws(() => readAnnouncement(data.subarray(0, 19)), /length .* is 19; .* at least 20/);
  });

  const used = (): ChannelSession => new ChannelSession(LIMITS, LIMITS);
  const within = (): ChannelSession => {
    const session = used();
    session.arrived(frame(MESSAGE, 0, 0, 60, 50));
    return session;
  };
  for (const [name, session, data, says] of [
    ['cut off', used, frame(MESSAGE, 0, 0, 0, 0).subarray(1), /length of a frame is 7/],
    ['kind', used, frame(5, 0, 0, 0, 0), /frame.kind is 5; it must be an integer from 1 to 4/],
    ['updates', used, frame(MESSAGE, 2, 0, 0, 0), /frame.updates is 2/],
    ['updates of none', used, frame(MESSAGE, 1, 0, 0, 0), /frame.updates is 1; .* from 0 to 0/],
    ['credits', used, frame(MESSAGE, 0, 1, 0, 0), /frame.credits is 1; .* from 0 to 0/],
    ['too long', used, frame(MESSAGE, 0, 0, 101, 9), /remainingBytes is 101; .* at most 100/],
    ['payload', used, frame(MESSAGE, 0, 0, 3, 4), /payload of a frame is 4; .* 1 to 3/],
    ['no payload', used, frame(MESSAGE, 0, 0, 3, 0), /payload of a frame is 0; .* 1 to 3/],
    ['another rest', within, frame(MESSAGE, 0, 0, 11, 1), /remainingBytes is 11; it must be 10/],
    ['end within', within, frame(END, 0, 0, 0, 0), /frame.kind is "END"; .* MESSAGE or ABANDON/],
    ['nothing begun', used, frame(ABANDON, 0, 0, 0, 0), /frame.kind is "ABANDON"/],
    ['END that has a rest', used, frame(END, 0, 0, 1, 0), /remainingBytes is 1; it must be 0/],
    ['END that carries', used, frame(END, 0, 0, 0, 1), /payload of a frame is 1; it must be 0/],
    ['CREDIT of none', used, frame(CREDIT, 0, 0, 0, 0), /frame.credits is 0; .* from 1/],
  ] as const) {
    it(`refuses a frame: ${name}`, () => {
      const peer = session();
      assert.throws(() => peer.arrived(data), { name: 'ChannelProtocolError', message: says });
    });
  }

  it('refuses what comes after END, and frames without a credit', () => {
    const ended = used();
    ended.arrived(frame(END, 0, 0, 0, 0));
    const late = /frame.kind is "MESSAGE"; it must be CREDIT while the peer is ENDED/;
    assert.throws(() => ended.arrived(frame(MESSAGE, 0, 0, 0, 0)), late);
    const full = used();
    for (let i = 0; i < 3; i++) full.arrived(frame(MESSAGE, 0, 0, 0, 0));
    const spent = /the credit of the peer is 0; it must be at least 1 for MESSAGE/;
    assert.throws(() => full.arrived(frame(MESSAGE, 0, 0, 0, 0)), spent);
  });

  it('grants credits when half are owed, or when the peer has none left, and not before', () => {
    const credits = new Credits(9, 9);
    const arrive = (): void => credits.arrived('MESSAGE', { updates: 0, credits: 0, ...REST });
    arrive();
    credits.posted('MESSAGE');
    assert.equal(credits.areDue, false);
    for (let i = 0; i < 7; i++) arrive();
    assert.equal(credits.areDue, true, 'the peer can send nothing until it is told');
    assert.deepEqual(credits.spend('MESSAGE'), { updates: 0, credits: 1 });
    for (let i = 0; i < 3; i++) credits.posted('MESSAGE');
    assert.equal(credits.areDue, false);
    credits.posted('MESSAGE');
    assert.equal(credits.areDue, true, 'half of eight');
  });

  it('tells of a CREDIT frame when its receive is posted again, and not before', () => {
    const credits = new Credits(4, 4);
    for (let i = 0; i < 2; i++) credits.spend('MESSAGE');
    credits.arrived('CREDIT', { updates: 0, credits: 1, ...REST });
    assert.equal(credits.spend('MESSAGE').updates, 0);
    const second = (): void => credits.arrived('CREDIT', { updates: 0, credits: 1, ...REST });
    assert.throws(second, /CREDIT frames not told of is 2/);
    credits.posted('CREDIT');
    assert.equal(credits.spend('MESSAGE').updates, 1);
    second();
  });

  it('refuses a second CREDIT frame before the first is told of', () => {
    const session = used();
    for (let i = 0; i < 2; i++) {
      session.departures.add({ lengthBytes: 1, sentBytes: 0, stage: 'WAITING' });
      session.next();
    }
    session.arrived(frame(CREDIT, 0, 1, 0, 0));
    session.posted('CREDIT');
    const says = /CREDIT frames not told of is 2; it must be at most 1/;
    assert.throws(() => session.arrived(frame(CREDIT, 0, 1, 0, 0)), says);
  });

  it('keeps its rules under 100,000 mutated frames', () => {
    const random = new SeededRandom(20);
    let [taken, refused] = [0, 0];
    let session = used();
    for (let i = 0; i < 100_000; i++) {
      const remaining = session.arrivals.missingBytes || random.below(100);
      const data = frame(MESSAGE, 0, 0, remaining, Math.min(remaining, 1 + random.below(56)));
      for (let flips = random.below(3); flips > 0; flips--) {
        data[random.below(Math.min(data.length, 12))]! ^= 1 << random.below(8);
      }
      const cut = random.percent(10) ? data.subarray(0, random.below(data.length)) : data;
      try {
        session.posted(session.arrived(cut).kind);
        session.next();
        taken++;
      } catch (error) {
        assert.ok(error instanceof ChannelProtocolError, String(error));
        assert.match(error.message, / is .*; it must be /);
        session = used();
        refused++;
      }
      const { available, owed } = session.credits;
      assert.ok(available >= 0 && available <= 3 && owed >= 0 && owed <= 3);
      assert.ok(session.arrivals.missingBytes <= LIMITS.maxMessageBytes);
    }
    assert.ok(taken > 10_000 && refused > 10_000, `${taken} taken, ${refused} refused`);
  });
});

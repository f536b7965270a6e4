/** An opener's end of its connection to the host of a domain: answers that come late, or never. */
import assert from 'node:assert/strict';
import { SpiError } from '../../../../core/spi/index.js';
import type { UnixMessage, UnixSocket } from '../../../../providers/host/index.js';
import { HostLink } from '../../../../providers/softroce/xrc-host/host-link.js';
import {
  decode,
  encode,
  type Message,
  type Note,
  type Request,
} from '../../../../providers/softroce/xrc-host/messages.js';

const ANSWER_MS = 20;

/** The host, as the socket to it shows it: it answers as it is told to. */
class Host implements UnixSocket {
  readonly heard: (Request & { readonly id: number })[] = [];
  answering: (request: Request & { readonly id: number }) => void = () => undefined;
  closed = false;
  private readonly waiting: (UnixMessage | null)[] = [];
  private onReadable = (): void => undefined;

  say(message: Message | null): void {
    this.waiting.push(message && { bytes: encode(message), descriptors: [] });
  }

  /** As the event loop does. */
  turn(): void {
    if (this.waiting.length > 0) this.onReadable();
  }

  send(bytes: Uint8Array): boolean {
    const message = decode(bytes);
    assert.ok('op' in message);
    this.heard.push(message);
    this.answering(message);
    return true;
  }

  receive(): UnixMessage | undefined | null {
    return this.waiting.shift();
  }

  take(): UnixMessage | undefined | null {
    return this.receive();
  }

  identity(): ReturnType<UnixSocket['identity']> {
    return { pid: 0, uid: 0, isOwnUser: true };
  }

  watch(onReadable: () => void): void {
    this.onReadable = onReadable;
  }

  close(): void {
    this.closed = true;
  }
}

function linked(): { host: Host; link: HostLink; notes: Note[]; ends: number[] } {
  const host = new Host();
  const notes: Note[] = [];
  const ends: number[] = [];
  const link = new HostLink({
    socket: host,
    turn: () => undefined,
    onNote: (note) => notes.push(note),
    onEnd: () => ends.push(1),
    answerMs: ANSWER_MS,
  });
  return { host, link, notes, ends };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const isTimeout = (error: unknown): boolean =>
  error instanceof SpiError && error.code === 'ETIMEDOUT';

describe('softroce: the connection to the host of an XRC domain', () => {
  it('what comes unasked while an answer is due is told afterwards, in its order', async () => {
    const { host, link, notes } = linked();
    host.answering = ({ id }) => {
      host.say({ note: 'targetEvent', qpn: 7, event: 1 });
      host.say({ note: 'look' });
      host.say({ answer: id, value: 7 });
    };
    assert.equal(link.ask({ op: 'createTarget', owner: 'consumer' }), 7);
    assert.deepEqual(notes, []);
    await nextTurn();
    assert.deepEqual(
      notes.map(({ note }) => note),
      ['targetEvent', 'look'],
    );
  });

  it('a host that does not answer is a timeout that says so, and may go on afterwards', () => {
    const { host, link, ends } = linked();
    assert.throws(
      () => link.ask({ op: 'query', qpn: 5 }),
      (error) => isTimeout(error) && /20 ms/.test(String(error)),
    );
    host.answering = ({ id }) => {
      host.say({ answer: 1, value: 'late' });
      host.say({ answer: id, value: 'in time' });
    };
    assert.equal(link.ask({ op: 'query', qpn: 5 }), 'in time');
    assert.deepEqual(ends, []);
  });

  const undone: readonly (readonly [Request, unknown, Request])[] = [
    [{ op: 'createTarget', owner: 'consumer' }, 99, { op: 'release', qpn: 99 }],
    [{ op: 'hold', qpn: 5 }, undefined, { op: 'release', qpn: 5 }],
    [
      { op: 'addQueue', zone: 1, srqn: 3, maxWr: 1, maxSge: 1 },
      undefined,
      { op: 'removeQueue', srqn: 3 },
    ],
    [
      {
        op: 'addRegion',
        zone: 1,
        key: 8,
        access: 0,
        iova: 0n,
        memoryBytes: 1,
        offset: 0,
        lengthBytes: 1,
      },
      undefined,
      { op: 'removeRegion', key: 8 },
    ],
  ];
  for (const [request, value, undoing] of undone) {
    it(`${request.op}: what a late answer says has been done is taken back, once`, () => {
      const { host, link } = linked();
      assert.throws(() => link.ask(request), isTimeout);
      host.say({ answer: 1, ...(value !== undefined && { value }) });
      host.say({ answer: 1, ...(value !== undefined && { value }) });
      host.turn();
      assert.deepEqual(host.heard.slice(1), [{ ...undoing, id: 2 }]);
    });
  }

  it('a late refusal takes nothing back', () => {
    const { host, link } = linked();
    assert.throws(() => link.ask({ op: 'hold', qpn: 5 }), isTimeout);
    host.say({ answer: 1, code: 'EINVAL', message: 'no target 5' });
    host.turn();
    assert.equal(host.heard.length, 1);
  });

  it('its end is told once, after what came before; whatever asks is refused', async () => {
    const { host, link, notes, ends } = linked();
    host.say({ note: 'look' });
    host.say(null);
    assert.throws(() => link.ask({ op: 'createTarget', owner: 'consumer' }), /has ended/);
    assert.throws(() => link.ask({ op: 'createTarget', owner: 'consumer' }), /has ended/);
    await nextTurn();
    assert.deepEqual([notes.length, ends.length, host.closed], [1, 1, true]);
  });

  it('what is asked later is heard by the event loop: an answer, a refusal, the end', async () => {
    const asked = linked();
    const opened = asked.link.askLater({ op: 'open', mode: 'create' });
    asked.host.say({ answer: 1, value: 'open' });
    asked.host.turn();
    assert.equal(await opened, 'open');
    const refused = linked();
    const refusing = refused.link.askLater({ op: 'open', mode: 'exclusive' });
    refused.host.say({ answer: 1, code: 'EINVAL', message: 'it exists' });
    refused.host.turn();
    await assert.rejects(refusing, { code: 'EINVAL', message: 'it exists' });
    const ending = linked();
    const ended = ending.link.askLater({ op: 'open', mode: 'create' });
    ending.host.say(null);
    ending.host.turn();
    await assert.rejects(ended, { code: 'EIO' });
    const silent = linked();
    await assert.rejects(silent.link.askLater({ op: 'open', mode: 'create' }), isTimeout);
    assert.deepEqual([ending.ends.length, silent.ends.length], [1, 0]);
  });
});

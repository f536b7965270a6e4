/** Two devices of one host meet, or stay apart; whoever dies or lies costs its own channel only. */
import assert from 'node:assert/strict';
import { closeSync, readdirSync } from 'node:fs';
import { SpiError } from '../../../../core/spi/index.js';
import { emitMessage, type Hello } from '../../../../providers/softroce/shm/hello.js';
import { nameOf } from '../../../../providers/softroce/shm/meetings.js';
import { FakeHost, Side, UDP_PORT } from './meeting-scene.js';

function pair(): { host: FakeHost; a: Side; b: Side } {
  const host = new FakeHost();
  return { host, a: new Side(host, 1n, '10.0.0.1'), b: new Side(host, 2n, '10.0.0.2') };
}

const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

describe('softroce: devices of one host meet', () => {
  it('by the call of either, once for any number of connections', () => {
    for (const swapped of [false, true]) {
      const { host, a, b } = pair();
      const [caller, called] = swapped ? [b, a] : [a, b];
      caller.wants(called);
      caller.wants(called);
      assert.deepEqual(caller.told, [], 'told when it is known');
      host.run();
      caller.wants(called);
      called.wants(caller);
      assert.deepEqual([caller.told, called.told], [[true, true, true], [true]]);
      assert.deepEqual([a.channelCount, b.channelCount], [1, 1]);
      assert.deepEqual([a.channels.offers.length, b.channels.offers.length], [1, 1]);
      assert.equal(b.channels.attached.get(0)?.generation, a.channels.offers[0]?.generation);
      assert.deepEqual([a.timers.size, b.timers.size], [0, 0]);
    }
  });

  it('in every order in which two that call at once can be heard', () => {
    let orders = 0;
    // Each run replays a list of choices; where it ends the first step is taken, and the number of
    // others noted: so all lists are gone through.
    const open: number[][] = [[]];
    for (let choices = open.pop(); choices; choices = open.pop()) {
      const { host, a, b } = pair();
      const pending = [() => a.wants(b), () => b.wants(a)];
      const taken: number[] = [];
      for (let i = 0; ; i++) {
        const steps = [...pending, ...host.steps()];
        if (steps.length === 0) break;
        const choice = choices[i] ?? 0;
        if (i >= choices.length) {
          for (let other = 1; other < steps.length; other++) open.push([...taken, other]);
        }
        taken.push(choice);
        if (choice < pending.length) pending.splice(choice, 1)[0]?.();
        else steps[choice]?.();
      }
      orders++;
      assert.deepEqual([a.told, b.told], [[true], [true]], taken.join());
      assert.deepEqual([a.channelCount, b.channelCount], [1, 1], taken.join());
      assert.deepEqual([a.channels.held, b.channels.held], [1, 1], taken.join());
      const [halfOfA] = b.channels.attached.values();
      assert.equal(
        a.channels.offers[[...a.channels.attached.keys()][0]!]?.generation,
        halfOfA?.generation,
      );
    }
    assert.ok(orders > 40, `${orders} orders`);
  });

  it('as processes that share a device: each with each, not with itself', () => {
    const host = new FakeHost();
    const slots = [0, 1, 2].map((slot) => new Side(host, 1n, '10.0.0.1', slot));
    const alone = new Side(host, 2n, '10.0.0.2');
    for (const one of slots) for (const other of slots) one.wants(other);
    for (const one of slots) alone.wants(one);
    host.run();
    for (const [i, { told, channels, channelCount }] of slots.entries()) {
      assert.deepEqual(told, [false, true, true], 'of itself it knows at once');
      assert.equal(channelCount, 3);
      const peers = [...channels.attached.values()].map(({ slot }) => slot);
      const others = [0, 1, 2, undefined].filter((slot) => slot !== i);
      assert.deepEqual(new Set(peers), new Set(others));
    }
    assert.deepEqual(alone.told, [true, true, true]);
    assert.equal(alone.channelCount, 3);
  });

  it('not where nothing listens, or what listens is of another user', () => {
    const { host, a, b } = pair();
    b.meetings.close();
    a.wants(b);
    assert.deepEqual(a.told, [false]);
    const c = new Side(host, 3n, '10.0.0.3');
    host.foreign.add(nameOf({ guid: 3n, slot: undefined }));
    a.wants(c);
    assert.deepEqual(a.told, [false, false]);
    assert.equal(a.channels.held, 0);
  });

  it('not with what calls as another user', () => {
    const { host, a } = pair();
    const before = openDescriptors();
    const socket = host.connectUnix(nameOf({ guid: a.guid, slot: undefined }));
    host.sockets.at(-1)!.isOwnUser = false;
    socket.send(emitMessage(helloOf(9n)), []);
    host.run();
    assert.equal(socket.receive(), null);
    assert.equal(a.channels.held, 0);
    assert.equal(openDescriptors(), before);
  });

  it('not with one that does not answer in time, and later all the same', () => {
    const { host, a, b } = pair();
    a.wants(b);
    for (const timer of [...a.timers]) timer();
    assert.deepEqual(a.told, [false]);
    assert.equal(a.channels.held, 0);
    host.run();
    assert.deepEqual(
      [a.channelCount, b.channelCount],
      [0, 0],
      'the late answer counts for neither',
    );
    a.wants(b);
    host.run();
    assert.deepEqual(a.told, [false, true]);
  });

  it('not when memory cannot be mapped, and nothing is held', () => {
    const before = openDescriptors();
    for (const which of ['a', 'b'] as const) {
      const scene = pair();
      const { host, a, b } = scene;
      scene[which].channels.refusal = new SpiError('EINVAL', 'not sealed');
      a.wants(b);
      host.run();
      assert.deepEqual(a.told, [false], which);
      assert.deepEqual([a.channels.held, b.channels.held], [0, 0], which);
      const offers = [...a.channels.offers, ...b.channels.offers];
      assert.equal(openDescriptors() - before, 2 * offers.length, 'those of the offers alone');
      host.run();
      for (const { memoryFd, wakeFd } of offers) closeAll([memoryFd, wakeFd]);
    }
  });

  it('anew when the peer ends: the other channels stay', () => {
    const { host, a, b } = pair();
    const c = new Side(host, 3n, '10.0.0.3');
    a.wants(b);
    a.wants(c);
    host.run();
    b.meetings.close();
    host.run();
    assert.deepEqual([a.channelCount, b.channelCount, c.channelCount], [1, 0, 1]);
    const restarted = new Side(host, 7n, '10.0.0.2');
    a.wants(restarted);
    host.run();
    assert.deepEqual(a.told, [true, true, true]);
    assert.deepEqual([a.channelCount, restarted.channelCount, c.channelCount], [2, 1, 1]);
  });

  it('and end when the port says that the channel has ended', () => {
    const { host, a, b } = pair();
    a.wants(b);
    host.run();
    a.channels.onClosed(0, 'a slot that may not be');
    host.run();
    assert.deepEqual([a.channelCount, b.channelCount], [0, 0]);
  });
});

describe('softroce: what devices that have met say', () => {
  it('is which segments there are: named once mapped, and no more when gone', () => {
    const { host, a, b } = pair();
    a.segments.push({ segment: 1, descriptor: 0, bytes: 8192 });
    a.wants(b);
    host.run();
    assert.deepEqual([a.channels.mapped, b.channels.mapped], [['use 0:1'], ['map 0:1 8192']]);
    a.segments.splice(0, 1, { segment: 2, descriptor: 0, bytes: 4096 });
    a.meetings.announce();
    a.meetings.announce();
    host.run();
    assert.deepEqual(a.channels.mapped, ['use 0:1', 'use 0:2']);
    assert.deepEqual(b.channels.mapped, ['map 0:1 8192', 'map 0:2 4096', 'unmap 0:1']);
  });

  it('stays unmapped beyond the limits, and ends the channel where it is a lie', () => {
    for (const code of ['ENOMEM', 'EINVAL'] as const) {
      const { host, a, b } = pair();
      a.wants(b);
      host.run();
      b.channels.refusal = new SpiError(code, 'no');
      a.segments.push({ segment: 1, descriptor: 0, bytes: 8192 });
      a.meetings.announce();
      host.run();
      assert.deepEqual(a.channels.mapped, []);
      const left = code === 'ENOMEM' ? 1 : 0;
      assert.deepEqual([a.channelCount, b.channelCount], [left, left], code);
    }
  });

  const lies: Readonly<Record<string, Uint8Array>> = {
    garbage: new Uint8Array(40),
    'another version': emitMessage(helloOf(9n)).fill(2, 4, 5),
    'a HELLO without descriptors': emitMessage(helloOf(9n)),
    'a segment before HELLO': emitMessage({ kind: 'SEGMENT_READY', segment: 1 }),
  };
  for (const [what, bytes] of Object.entries(lies)) {
    it(`ends the call of a stranger that begins with ${what}`, () => {
      const { host, a, b } = pair();
      const stranger = host.connectUnix(nameOf({ guid: a.guid, slot: undefined }));
      stranger.send(bytes, []);
      a.wants(b);
      host.run();
      assert.equal(stranger.receive(), null);
      assert.deepEqual([a.told, a.channels.held, a.timers.size], [[true], 1, 0]);
    });
  }

  it('ends the channel of a peer that says what it may not, and no other', () => {
    const { host, a, b } = pair();
    const c = new Side(host, 3n, '10.0.0.3');
    a.wants(b);
    a.wants(c);
    host.run();
    const [ofB] = host.sockets;
    ofB!.other!.send(emitMessage({ kind: 'SEGMENT_READY', segment: 5 }), []);
    host.run();
    assert.deepEqual([a.channelCount, b.channelCount, c.channelCount], [1, 0, 1]);
  });

  it('lets 16 strangers wait at a time, for a second each', () => {
    const { host, a } = pair();
    const strangers = Array.from({ length: 20 }, () =>
      host.connectUnix(nameOf({ guid: a.guid, slot: undefined })),
    );
    host.run();
    assert.equal(strangers.filter((each) => each.receive() === null).length, 4);
    assert.equal(a.timers.size, 16);
    for (const timer of [...a.timers]) timer();
    assert.equal(strangers.filter((each) => each.receive() === null).length, 20);
  });
});

function helloOf(guid: bigint): Hello {
  const gids = [new Uint8Array(16)];
  return {
    kind: 'HELLO',
    slot: undefined,
    guid,
    generation: 1n,
    memoryBytes: 4096,
    udpPort: UDP_PORT,
    gids,
  };
}

function closeAll(descriptors: readonly number[]): void {
  for (const descriptor of descriptors) closeSync(descriptor);
}

// A hundred thousand messages, by seed, one in some of them changed: whatever comes, the connection
// carries on or ends with EPROTO, another one carries on, and nothing is left.
import assert from 'node:assert/strict';
import { rsocket, type RsocketStream } from '../../../../../samples/ulp/rsocket/index.js';
import { immediateOf, Operation } from '../../../../../samples/ulp/rsocket/wire/index.js';
import { RawPeer } from './raw-peer.js';
import { randomOf } from './simulation.js';
import { leftOf, listening, NOTHING_LEFT, PORT, Seen, SERVER, worldOf } from './stream-scene.js';

const MESSAGES = 100_000;
const BURST = 8;
const RECEIVE_BYTES = 8192;
const HALF = RECEIVE_BYTES / 2;
const CREDITS = 64;
/** One message in so many is changed. */
const CHANGED = 24;
const CODES: readonly (string | undefined)[] = [undefined, 'EPROTO'];

/** A message as it may be sent, or changed. */
function sendOne(peer: RawPeer, random: (below: number) => number): boolean {
  const isChanged = random(CHANGED) === 0;
  if (!isChanged) {
    if (random(8) > 0) peer.sendData(1 + random(2));
    else peer.tell(immediateOf(Operation.TARGET, 32));
    return false;
  }
  const { address, key } = peer.theirs.buffer;
  const bytes = [0, 1, 8, 12, 16, 24, HALF][random(7)] as number;
  const immediate = immediateOf(
    random(8),
    [0, 1, 2, 3, bytes, random(2 ** 29)][random(6)] as number,
  );
  const region = {
    address: [0n, address, peer.data.buffer.address, 2n ** 64n - 1n][random(4)] as bigint,
    key: [key, peer.data.buffer.key, random(2 ** 32)][random(3)] as number,
    length: [0, 1, HALF, 2 ** 32 - 1][random(4)] as number,
  };
  switch (random(7)) {
    case 0:
      peer.write(bytes, address + BigInt(random(2 * RECEIVE_BYTES)), key, immediate);
      break;
    case 1:
      peer.write(bytes, address, random(2) === 0 ? key : random(2 ** 32), immediate);
      break;
    case 2:
      peer.target(random(3), region, random(2 ** 29), bytes);
      break;
    case 3:
      peer.iomap(random(4), region, bytes);
      break;
    case 4:
      peer.send(bytes, random(2) === 0 ? undefined : immediate);
      break;
    case 5:
      peer.sendData(random(HALF + 10), random(HALF + 10));
      break;
    default:
      peer.tell(immediate, bytes);
  }
  return true;
}

describe('rsocket: mutated messages', () => {
  it(`${MESSAGES} of them`, async function () {
    this.timeout(600_000);
    const random = randomOf(20);
    const world = await worldOf();
    const options = {
      ...{ receiveBytes: RECEIVE_BYTES, credits: CREDITS, iomapSlots: 2 },
      after: world.after,
    };
    let accepted: (stream: RsocketStream) => void = () => undefined;
    const nextStream = (): Promise<RsocketStream> =>
      new Promise((resolve) => {
        accepted = resolve;
      });
    const listener = await listening(rsocket(world.server, options), (stream) => accepted(stream));
    const coming = nextStream();
    const near = new Seen(
      await rsocket(world.client, options).connect({ address: SERVER, port: PORT }),
    );
    const far = new Seen(await coming);
    const ends = new Map<string, number>();
    let [sent, changed, echoed] = [0, 0, 0];
    while (sent < MESSAGES) {
      const peer = new RawPeer(world.client);
      const arriving = nextStream();
      await peer.connect();
      const reads = random(8) > 0;
      const seen = new Seen(await arriving, reads);
      if (random(2) === 0) seen.write(new Uint8Array(1 + random(3 * HALF))).catch(() => undefined);
      while (peer.drain() && seen.closed === undefined && !seen.stream.hasEnded) {
        for (let n = 0; n < BURST && sent < MESSAGES; n++, sent++) {
          if (sendOne(peer, random)) changed++;
        }
        if (sent >= MESSAGES) break;
        await world.sleep(20);
      }
      // What came before the end stays to be read: who reads nothing closes.
      if (!reads || seen.stream.hasEnded || sent >= MESSAGES) seen.stream.close();
      const error = await seen.end();
      assert.ok(CODES.includes(error?.code), String(error));
      ends.set(error?.code ?? 'closed', (ends.get(error?.code ?? 'closed') ?? 0) + 1);
      await peer.end();
      peer.leave();
      await near.write(Uint8Array.of(++echoed & 0xff));
      await far.until(() => far.received.length === echoed);
    }
    assert.ok(changed > 1000 && (ends.get('EPROTO') ?? 0) > 1000, `${changed} changed`);
    near.stream.close();
    await near.end();
    far.stream.close();
    await far.end();
    await listener.close();
    assert.equal(leftOf(world.server), NOTHING_LEFT);
    assert.equal(leftOf(world.client), NOTHING_LEFT);
    await world.close();
  });
});

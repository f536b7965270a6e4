import assert from 'node:assert/strict';
import { WrOpcode } from '../../../core/spi/index.js';
import { drain, postSend } from '../../support/hca-pair.js';
import { WatchedNode } from '../../support/watched-node.js';

const BULK = 65_536;
/** What the peer needs for an answer, in looks of the node at its port: a microsecond each. */
const TAKES_US = 30;
/** From the last request on; and what is done besides. */
const PATIENCE_US = 200;
const FEW_US = 25;

/** A node that answers the READs of a peer; what the system does for a socket is `wake`. */
class Reading extends WatchedNode {
  answered = 0;
  /** READs that the peer asks for, each when the one before has been answered. */
  left = 0;
  lastUs = 0;
  private bytes = 0;
  private sinceUs: number | undefined;

  constructor() {
    // A machine may stand still for longer than an ACK timeout.
    super({ memoryBytes: BULK, pathMtuBytes: 4096, timeout: 0 });
    this.node.processHold.retain();
    this.port.peerWorks = () => this.work();
  }

  get timeUs(): number {
    return this.port.clockUs[0]!;
  }

  pass(us: number): void {
    this.port.clockUs[0]! += us;
  }

  ask(bytes: number): void {
    const { peer, peerQp, memory } = this;
    this.bytes = bytes;
    postSend(peer, peerQp, {
      opcode: WrOpcode.RDMA_READ,
      segments: [{ offset: 0, length: bytes }],
      remoteAddress: memory.base,
      rkey: memory.region.rkey,
    });
    peer.driver.pump();
    this.lastUs = this.timeUs;
  }

  /** The system tells the node; then the event loop has many turns. */
  async wake(): Promise<void> {
    this.port.handlers?.onReadable();
    await this.turns();
  }

  async turns(): Promise<void> {
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  }

  /** The peer takes in what it has been sent, and asks again. */
  takeIn(): void {
    const { peer } = this;
    peer.driver.pump();
    const came = drain(peer.sendCq).length;
    this.answered += came;
    if (came === 0 || this.left === 0) return;
    this.left -= 1;
    this.ask(this.bytes);
  }

  end(): void {
    this.node.processHold.release();
    void this.node.device.close();
  }

  private work(): void {
    if (this.peer.port.pending === 0) return;
    this.sinceUs ??= this.timeUs;
    if (this.timeUs < this.sinceUs + TAKES_US) return;
    this.sinceUs = undefined;
    this.takeIn();
  }
}

describe('a softroce node whose memory is read', () => {
  let reading: Reading;

  beforeEach(() => {
    reading = new Reading();
  });

  afterEach(() => reading.end());

  it('looks for the next READ of bulk in a row, unasked by the system, for 200 us', async () => {
    reading.left = 40;
    reading.ask(BULK);
    await reading.wake();
    assert.equal(reading.answered, 0, 'the first is none in a row: nobody looked at the port');
    reading.takeIn();
    await reading.wake();
    assert.equal(reading.answered, 41);
    const looked = reading.timeUs - reading.lastUs;
    assert.ok(looked >= PATIENCE_US && looked < PATIENCE_US + FEW_US, `${looked} us`);
  });

  it('looks no further for several of one burst, as a READ of a MiB is asked for', async () => {
    reading.ask(BULK);
    reading.ask(BULK);
    await reading.wake();
    assert.ok(reading.timeUs - reading.lastUs < FEW_US);
  });

  for (const { what, bytes, gapUs } of [
    { what: 'are small', bytes: 16_384, gapUs: 0 },
    { what: 'are far between', bytes: BULK, gapUs: PATIENCE_US },
  ]) {
    it(`looks no further where READs ${what}`, async () => {
      for (let i = 0; i < 5; i++) {
        reading.pass(gapUs);
        reading.ask(bytes);
        await reading.wake();
        const looked = reading.timeUs - reading.lastUs;
        assert.ok(looked < FEW_US, `${looked} us`);
        reading.takeIn();
      }
      assert.equal(reading.answered, 5);
    });
  }
});

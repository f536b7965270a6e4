/** What network and system say of a connection's packets: no retry, but a record and a cause. */
import assert from 'node:assert/strict';
import {
  type NetworkReport,
  QpState,
  type QueuePair,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { HcaPair, connect, drain, postReceive, postSend } from '../../support/hca-pair.js';

const SECOND_US = 1_000_000;
/** What endpoints have by default: 4.096 us * 2^16 with the peer's delay, and 7 retries. */
const DEFAULTS = { timeout: 16, retryCount: 7 };

class Scene {
  readonly pair = new HcaPair(7);
  readonly qp: QueuePair;
  readonly peerQp: QueuePair;
  private readonly gid = this.pair.b.port.gids[0] ?? new Uint8Array(16);
  private readonly handlers = this.pair.a.driver.portHandlers(() => undefined);

  constructor(attributes: { timeout?: number; retryCount?: number } = DEFAULTS) {
    this.qp = this.pair.a.createQp();
    this.peerQp = this.pair.b.createQp();
    connect(this.pair, this.qp, this.peerQp, attributes, 1024);
  }

  send(length = 64): void {
    postReceive(this.pair.b, this.peerQp, [{ offset: 0, length }]);
    const segments = [{ offset: 0, length }];
    postSend(this.pair.a, this.qp, { opcode: WrOpcode.SEND, cookie: 1, segments });
  }

  say(report: Said): void {
    this.handlers.onReport({ ...report, gid: this.gid });
  }

  /** Nothing arrives, and from time to time it is said so. */
  silence(forUs: number, report?: Said, everyUs = 100_000): void {
    this.pair.a.port.filter = () => [];
    this.pair.run(1);
    for (let us = 0; us < forUs; us += everyUs) {
      if (report) this.say(report);
      this.pair.run(everyUs);
    }
  }

  speak(): void {
    this.pair.a.port.filter = undefined;
  }

  get statuses(): number[] {
    return drain(this.pair.a.sendCq).map(({ status }) => status);
  }

  get record(): string {
    return this.qp.flightRecord().join('\n');
  }
}

type Without<T> = T extends unknown ? Omit<T, 'gid'> : never;
type Said = Without<NetworkReport>;

const SAID: Readonly<Record<string, Said>> = {
  nothing: { type: 'unreachable' },
  'a port that nothing listens at': { type: 'port-unreachable' },
  ...Object.fromEntries(
    ['ENETUNREACH', 'EHOSTUNREACH', 'ENETDOWN', 'EPERM', 'ENOBUFS'].map(
      (code) => [`refused by ${code}`, { type: 'refused', code }] as const,
    ),
  ),
  'too long for the own link': { type: 'too-long', packetBytes: 1084, mtuBytes: 1000 },
  'too big for a router': { type: 'too-big', mtuBytes: 600 },
};

describe('RC: reports of network and system', () => {
  for (const [name, report] of Object.entries(SAID)) {
    it(`5 s without a link are survived with default attributes: ${name}`, () => {
      const scene = new Scene();
      scene.send();
      scene.silence(5 * SECOND_US, report);
      assert.equal(scene.qp.state, QpState.RTS);
      const silent = new Scene();
      silent.send();
      silent.silence(5 * SECOND_US);
      const retriesOf = ({ pair }: Scene): number => pair.a.driver.device.counters.retries;
      assert.equal(retriesOf(scene), retriesOf(silent), 'a retry that the ACK timer did not make');
      scene.speak();
      scene.pair.run(5 * SECOND_US);
      assert.deepEqual(scene.statuses, [WcStatus.SUCCESS]);
      assert.equal(scene.qp.networkTrouble?.(), undefined);
    });
  }

  for (const [everyUs, pauseMs] of [
    [130_000, 1800],
    [130_000, 2500],
    [1_000, 2500],
  ] as const) {
    it(`forged "port unreachable" each ${everyUs} us: a pause of ${pauseMs} ms is survived`, () => {
      const scene = new Scene();
      scene.send(4096);
      scene.silence(1000 * pauseMs, { type: 'port-unreachable' }, everyUs);
      assert.equal(scene.qp.state, QpState.RTS);
      scene.speak();
      scene.pair.run(5 * SECOND_US);
      assert.deepEqual(scene.statuses, [WcStatus.SUCCESS]);
    });
  }

  for (const retryCount of [0, 1, 7]) {
    it(`hints end nothing before an ACK timeout: ${retryCount} retries`, () => {
      const scene = new Scene({ timeout: 20, retryCount });
      scene.send();
      scene.silence(2 * SECOND_US, { type: 'port-unreachable' });
      assert.equal(scene.qp.state, QpState.RTS);
      scene.speak();
      scene.pair.run(20 * SECOND_US);
      assert.deepEqual(scene.statuses, [WcStatus.SUCCESS]);
    });
  }

  const CAUSES: readonly (readonly [Said, RegExp])[] = [
    [
      { type: 'too-long', packetBytes: 1084, mtuBytes: 1000 },
      /^a packet of 1084 bytes refused .*\(EMSGSIZE\): the link carries 1000; .*mtuBytes: 512$/,
    ],
    [
      { type: 'too-big', mtuBytes: 400 },
      /^ICMP fragmentation needed: a router carries 400 bytes, .*mtuBytes: 256$/,
    ],
    [{ type: 'too-big', mtuBytes: 68 }, /; no RoCE packet fits the way to \S+$/],
    [{ type: 'refused', code: 'EPERM' }, /^refused by our system \(EPERM\)$/],
    [{ type: 'unreachable' }, /^ICMP destination unreachable$/],
  ];
  for (const [report, cause] of CAUSES) {
    it(`names the cause of a break: ${JSON.stringify(report)}`, () => {
      const scene = new Scene({ timeout: 12, retryCount: 1 });
      scene.send();
      scene.silence(SECOND_US, report);
      assert.deepEqual(scene.statuses, [WcStatus.RETRY_EXC_ERR]);
      const said = scene.qp.networkTrouble?.() ?? '';
      assert.match(said, cause);
      assert.ok(scene.record.includes(said), scene.record);
    });
  }

  it('notes each kind once for one oldest packet, however often it comes', () => {
    const scene = new Scene();
    scene.send();
    scene.silence(3 * SECOND_US, { type: 'refused', code: 'ENETDOWN' });
    assert.equal(scene.record.match(/ENETDOWN/g)?.length, 1);
  });

  it('says nothing of what has been acknowledged since', () => {
    const scene = new Scene({ timeout: 12, retryCount: 1 });
    scene.send();
    scene.say({ type: 'too-big', mtuBytes: 600 });
    scene.pair.run(10_000);
    assert.deepEqual(scene.statuses, [WcStatus.SUCCESS]);
    scene.send();
    scene.silence(SECOND_US);
    assert.deepEqual(scene.statuses, [WcStatus.RETRY_EXC_ERR]);
    assert.equal(scene.qp.networkTrouble?.(), undefined);
  });

  for (const [before, suspected] of [
    [64, true],
    [20_000, false],
  ] as const) {
    it(`${suspected ? 'suspects' : 'clears'} the length after a message of ${before} bytes`, () => {
      const scene = new Scene({ timeout: 12, retryCount: 1 });
      scene.send(before);
      scene.pair.run(100_000);
      scene.send(20_000);
      scene.silence(SECOND_US);
      assert.deepEqual(scene.statuses, [WcStatus.SUCCESS, WcStatus.RETRY_EXC_ERR]);
      const said = scene.qp.networkTrouble?.() ?? '';
      assert.equal(/^no packet of \d+ bytes was ever answered; /.test(said), suspected, said);
    });
  }
});

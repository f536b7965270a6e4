/** tshark reads what adapters send, and has nothing to complain of; nothing is missing. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openIa } from 'dapl';
import { Fabric, mock, MockNode } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { gidFromIp, GSI_QKEY, GSI_QPN, silentLogger } from '../../core/spi/index.js';
import { CM_ATTRIBUTE, type CmMessageName } from '../../plugins/cm/wire/cm-codec.js';
import { emitCmMad } from '../../plugins/cm/wire/message.js';
import { Mad } from '../../plugins/mad/index.js';
import { OPCODES } from '../../core/spi/wire/opcode.js';
import { readPcap, writePcap } from '../guest/pcap.js';
import { loopback, networkOf } from '../support/loopback.js';
import { complaintOf, type Decoded, decode } from './decode.js';
import { frameOf } from './frames.js';
import { LAP } from './lap.js';
import { playAll, type Stage } from './scenario.js';

const RC_CODES = OPCODES.filter(({ opcode, known }) => known && opcode < 0x18).map((o) => o.opcode);
const UD_CODES = [0x64, 0x65];
/** READ responses of several packets: FIRST, MIDDLE, LAST. */
const LONG_READ_CODES = [0x0d, 0x0e, 0x0f];
const CM_CLASS = 0x07;

/** As the dissector names them. */
const CM_NAMES: Readonly<Record<CmMessageName, RegExp>> = {
  REQ: /CM: ConnectRequest/,
  MRA: /CM: MsgRcptAck/,
  REJ: /CM: ConnectReject/,
  REP: /CM: ConnectReply/,
  RTU: /CM: ReadyToUse/,
  DREQ: /CM: DisconnectRequest/,
  DREP: /CM: DisconnectReply/,
  SIDR_REQ: /CM: ServiceIDResReq/,
  SIDR_REP: /CM: ServiceIDResReqResp/,
  LAP: /CM: LoadAlternatePath/,
  APR: /CM: AlternatePathResponse/,
};

function assertOpcodes(packets: readonly Decoded[], expected: readonly number[]): void {
  const seen = new Set(packets.map((packet) => Number(packet['infiniband.bth.opcode'])));
  const missing = expected.filter((code) => !seen.has(code));
  assert.deepEqual(
    missing.map((code) => OPCODES[code]?.name),
    [],
    'not seen',
  );
}

function assertCmMessages(packets: readonly Decoded[], expected: readonly CmMessageName[]): void {
  for (const name of expected) {
    const attribute = CM_ATTRIBUTE[name];
    const found = packets.filter(
      (packet) =>
        Number(packet['infiniband.mad.mgmtclass']) === CM_CLASS &&
        Number(packet['infiniband.mad.attributeid']) === attribute,
    );
    assert.ok(found.length > 0, `${name} not seen`);
    for (const packet of found) assert.match(packet['_ws.col.Info'] ?? '', CM_NAMES[name]);
  }
}

describe('tshark reads what we send', function () {
  this.timeout(120_000);
  let directory = '';
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'dapl-tshark-'));
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  const ALL_BUT_LAP = (Object.keys(CM_ATTRIBUTE) as CmMessageName[]).filter(
    (name) => name !== 'LAP' && name !== 'APR',
  );

  for (const [family, active, passive] of [
    ['IPv4', '192.0.2.1', '192.0.2.2'],
    ['IPv6', 'fd00::1', 'fd00::2'],
  ] as const) {
    it(`on the simulated fabric, over ${family}: every operation, every CM message`, async () => {
      const file = join(directory, `mock-${family}.pcap`);
      const fabric = new Fabric({ seed: 1, autoRun: true });
      const frames: Buffer[] = [];
      fabric.tap = (event, packet) => void (event === 'sent' && frames.push(frameOf(packet)));
      const ias = [
        await openIa(mock({ fabric, address: active })),
        await openIa(mock({ fabric, address: passive })),
      ] as const;
      const pause = (ms: number): Promise<void> => fabric.run({ forUs: ms * 1000 });
      await playAll({ active: ias[0], passive: ias[1], passiveAddress: passive, pause });
      await askForPath(fabric, family === 'IPv4' ? '192.0.2.3' : 'fd00::3', passive);
      await pause(10);
      await Promise.all(ias.map((ia) => ia.close()));
      writePcap(file, frames);
      const packets = await decode(file, CM_FIELDS);
      assert.equal(packets.length, frames.length);
      assertCmFields(packets);
      assert.deepEqual(
        packets.flatMap((packet) => complaintOf(packet) ?? []),
        [],
      );
      assertOpcodes(packets, [...RC_CODES, ...UD_CODES]);
      assertCmMessages(packets, [...ALL_BUT_LAP, 'LAP', 'APR']);
      assertSameOpcodes(frames, packets);
    });
  }

  it('on a real socket: every operation, every CM message', async () => {
    const file = join(directory, 'softroce.pcap');
    const dumpcap = await startCapture(file);
    const [active, passive] = [loopback(3, 1), loopback(3, 2)];
    const ias = [
      await openIa(softroce({ addresses: [active], port: 'dgram' })),
      await openIa(softroce({ addresses: [passive], port: 'dgram' })),
    ] as const;
    const stage: Stage = {
      active: ias[0],
      passive: ias[1],
      passiveAddress: passive,
      pause: (ms) => sleep(ms),
    };
    try {
      await playAll(stage);
    } finally {
      await Promise.all(ias.map((ia) => ia.close()));
      await stopCapture(dumpcap);
    }
    const packets = await decode(file);
    assertSameOpcodes(readPcap(file), packets);
    assert.deepEqual(
      packets.flatMap((packet) => complaintOf(packet) ?? []),
      [],
    );
    // On a busy machine answers come late, the congestion window closes to one packet, and a READ
    // is asked for packet by packet: each response is an ONLY. The simulated fabric shows the rest.
    const always = RC_CODES.filter((opcode) => !LONG_READ_CODES.includes(opcode));
    assertOpcodes(packets, [...always, ...UD_CODES]);
    assertCmMessages(packets, ALL_BUT_LAP);
  });
});

const REQ = 'infiniband.cm.req';
const REP = 'infiniband.cm.rep';
const CM_FIELDS = [
  ...[`${REQ}.serviceid`, `${REQ}.localqpn`, `${REQ}.startpsn`, `${REQ}.pkey`, `${REQ}.pppmtu`],
  ...[`${REQ}.retrcount`, `${REQ}.prim_locallid`, `${REQ}.prim_hoplim`, `${REQ}.ip_cm.ipv`],
  ...[`${REQ}.ip_cm.private`, `${REP}.localqpn`, `${REP}.startpsn`, `${REP}.private`, REQ],
  ...[`${REP}.remotecommid`, 'infiniband.cm.rej.reason', 'infiniband.cm.rej.private'],
  ...[`${REQ}.remoteqpneecn`, 'infiniband.cm.rtu.localcommid', 'infiniband.cm.dreq.localcommid'],
];

/** What our messages mean to the dissector is what they mean to us. */
function assertCmFields(packets: readonly Decoded[]): void {
  const of = (name: CmMessageName): Decoded[] =>
    packets.filter((packet) => CM_NAMES[name].test(packet['_ws.col.Info'] ?? ''));
  const value = (packet: Decoded | undefined, field: string): number => Number(packet?.[field]);
  const hex = (text: string): string => Buffer.from(text).toString('hex');
  for (const req of of('REQ')) {
    assert.equal(BigInt(req[`${REQ}.serviceid`] ?? 0), 0x0106_1d2fn);
    assert.equal(value(req, `${REQ}.pkey`), 0xffff);
    assert.equal(value(req, `${REQ}.pppmtu`), 3);
    assert.equal(value(req, `${REQ}.retrcount`), 7);
    assert.equal(value(req, `${REQ}.prim_locallid`), 0xffff);
    assert.equal(value(req, `${REQ}.prim_hoplim`), 64);
  }
  const reasons = of('REJ').map((rej) => value(rej, 'infiniband.cm.rej.reason'));
  assert.deepEqual(reasons, [8, 28]);
  const [, refused] = of('REJ');
  assert.ok(refused?.['infiniband.cm.rej.private']?.replaceAll(':', '').startsWith(hex('no')));
  const [rep] = of('REP');
  assert.ok(rep?.[`${REP}.private`]?.replaceAll(':', '').startsWith(hex('welcome')));
  const req = of('REQ').find((one) => one[REQ] === rep?.[`${REP}.remotecommid`]);
  assert.ok(req?.[`${REQ}.ip_cm.private`]?.replaceAll(':', '').startsWith(hex('hello')));
  const [rtu] = of('RTU');
  assert.equal(value(rtu, 'infiniband.cm.rtu.localcommid'), value(req, REQ));
  const dreq = of('DREQ').find((one) => one['infiniband.cm.dreq.localcommid'] === req?.[REQ]);
  assert.equal(value(dreq, `${REQ}.remoteqpneecn`), value(rep, `${REP}.localqpn`));
}

/** The opcode that tshark reads is the byte behind the headers. */
function assertSameOpcodes(frames: readonly Buffer[], packets: readonly Decoded[]): void {
  for (const [i, frame] of frames.entries()) {
    const headers = 14 + (frame.readUInt16BE(12) === 0x0800 ? 20 : 40) + 8;
    assert.equal(Number(packets[i]?.['infiniband.bth.opcode']), frame[headers], `frame ${i + 1}`);
  }
}

/** A node that asks for an alternate path: LAP, which nobody here sends by itself; APR follows. */
async function askForPath(fabric: Fabric, address: string, to: string): Promise<void> {
  const node = new MockNode(fabric, { addresses: [address] });
  const { device, timers, scheduler, random } = node;
  const services = { device, timers, scheduler, random, clock: fabric.clock };
  const mad = new Mad({ ...services, logger: silentLogger });
  const agent = mad.registerAgent({
    managementClass: CM_CLASS,
    classVersion: 2,
    methods: [3],
    onReceive: () => undefined,
    onSend: () => undefined,
  });
  const ids = { transactionIdHi: agent.hiTid, transactionIdLo: 5, attributeModifier: 0 };
  agent.send({
    destination: { gid: gidFromIp(to), localGidIndex: 0, qpn: GSI_QPN, qkey: GSI_QKEY },
    data: emitCmMad({ ...ids, message: { name: 'LAP', body: LAP } }),
    timeoutUs: 0,
    retries: 0,
  });
  await fabric.run({ forUs: 1_000 });
  await mad.close();
  await node.close();
}

/** Not what other programs send on loopback meanwhile. */
const OURS = `udp port 4791 and net ${networkOf(3)}.0/24`;

/** Resolves when packets are being taken down. */
async function startCapture(file: string): Promise<ChildProcess> {
  const child = spawn('dumpcap', ['-q', '-P', '-i', 'lo', '-f', OURS, '-w', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  const ready = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`dumpcap: ${said}`)));
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('File:')) resolve();
    });
  });
  await ready;
  return child;
}

async function stopCapture(child: ChildProcess): Promise<void> {
  // The kernel hands packets on in blocks: the last one is let come.
  await sleep(1000);
  const ended = once(child, 'exit');
  child.kill('SIGINT');
  await ended;
}

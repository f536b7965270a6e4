/** tshark reads XRC, RMPP and UC, and means by it what we do. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { RMPP_TYPE } from '../../plugins/mad/wire/rmpp-header.js';
import { OPCODES } from '../../core/spi/wire/opcode.js';
import { writePcap } from '../guest/pcap.js';
import { complaintOf, type Decoded, decode } from './decode.js';
import { frameOf } from './frames.js';
import { MAD_BYTES, playMads } from './mad-scenario.js';
import type { Stage } from './scenario.js';
import { playUc } from './uc-scenario.js';
import { playXrc } from './xrc-scenario.js';

const OPCODE = 'infiniband.bth.opcode';
const XRC_SEND_ONLY = 0xa4;
const RMPP = 'infiniband.rmpp';
const SA_CLASS = 0x03;
/** Of the data, each segment repeats 20 bytes: the header of the class. */
const REPEATED_BYTES = 20;
const SEGMENT_BYTES = 200;
const FIELDS = [
  ...[`${RMPP}.rmpptype`, `${RMPP}.rmppflags`, `${RMPP}.segmentnumber`, `${RMPP}.payloadlength`],
  ...[`${RMPP}.newwindowlast`, `${RMPP}.rmppstatus`, `${RMPP}.rmppversion`],
  ...['infiniband.mad.method', 'infiniband.mad.status'],
  ...[
    'infiniband.cm.req.transpsvctype',
    'infiniband.cm.rep.localeecn',
    'infiniband.cm.req.ext_transport',
    'infiniband.bth.destqp',
  ],
];

const number = (packet: Decoded, field: string): number => Number(packet[field]);

function knownCodes(first: number): number[] {
  const ours = OPCODES.filter(
    ({ opcode, known }) => known && opcode >= first && opcode < first + 0x18,
  );
  return ours.map(({ opcode }) => opcode);
}

function assertOpcodes(packets: readonly Decoded[], expected: readonly number[]): void {
  const seen = new Set(packets.map((packet) => number(packet, OPCODE)));
  const missing = expected.filter((code) => !seen.has(code));
  assert.deepEqual(
    missing.map((code) => OPCODES[code]?.name),
    [],
    'not seen',
  );
}

describe('tshark reads what the modules send', function () {
  this.timeout(120_000);
  let directory = '';
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'dapl-tshark-'));
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  for (const [family, active, passive] of [
    ['IPv4', '192.0.2.1', '192.0.2.2'],
    ['IPv6', 'fd00::1', 'fd00::2'],
  ] as const) {
    /** What goes over the wire meanwhile, decoded: all of it without complaint. */
    async function capture(name: string, play: (fabric: Fabric) => Promise<void>) {
      const fabric = new Fabric({ seed: 1, autoRun: true });
      const frames: Buffer[] = [];
      fabric.tap = (event, packet) => void (event === 'sent' && frames.push(frameOf(packet)));
      await play(fabric);
      const file = join(directory, `${name}-${family}.pcap`);
      writePcap(file, frames);
      const packets = await decode(file, FIELDS);
      assert.equal(packets.length, frames.length);
      assert.deepEqual(
        packets.flatMap((packet) => complaintOf(packet) ?? []),
        [],
      );
      return packets;
    }

    async function onStage(fabric: Fabric, play: (stage: Stage) => Promise<void>): Promise<void> {
      const ias = [
        await openIa(mock({ fabric, address: active })),
        await openIa(mock({ fabric, address: passive })),
      ] as const;
      const pause = (ms: number): Promise<void> => fabric.run({ forUs: ms * 1000 });
      try {
        await play({ active: ias[0], passive: ias[1], passiveAddress: passive, pause });
      } finally {
        await Promise.all(ias.map((ia) => ia.close('abrupt')));
      }
    }

    it(`XRC over ${family}: every operation, and its connection`, async () => {
      const packets = await capture('xrc', (fabric) => onStage(fabric, playXrc));
      assertOpcodes(packets, knownCodes(0xa0));
      const [req] = packets.filter((p) => /ConnectRequest/.test(p['_ws.col.Info'] ?? ''));
      const [rep] = packets.filter((p) => /ConnectReply/.test(p['_ws.col.Info'] ?? ''));
      assert.ok(req && rep);
      assert.equal(number(req, 'infiniband.cm.req.transpsvctype'), 3);
      assert.equal(number(req, 'infiniband.cm.req.ext_transport'), 1);
      const targets = packets.filter((p) => number(p, OPCODE) === XRC_SEND_ONLY);
      const [target] = targets.map((p) => p['infiniband.bth.destqp']);
      assert.equal(number(rep, 'infiniband.cm.rep.localeecn'), Number(target));
    });

    it(`management datagrams over ${family}, short and long`, async () => {
      const packets = await capture('mads', (fabric) => onStage(fabric, playMads));
      const mads = packets.filter((p) => number(p, 'infiniband.mad.mgmtclass') === SA_CLASS);
      const ofType = (type: number): Decoded[] =>
        mads.filter((packet) => number(packet, `${RMPP}.rmpptype`) === type);
      const longest = Math.ceil((Math.max(...MAD_BYTES) - REPEATED_BYTES) / SEGMENT_BYTES);
      const numbers = ofType(RMPP_TYPE.DATA).map((p) => number(p, `${RMPP}.segmentnumber`));
      assert.equal(Math.max(...numbers), longest);
      const acks = ofType(RMPP_TYPE.ACK).map((p) => [
        number(p, `${RMPP}.segmentnumber`),
        number(p, `${RMPP}.newwindowlast`),
      ]);
      // The first segment, then a window at a time, then the last one.
      for (const ack of [
        [1, 65],
        [65, 129],
        [longest, 129],
      ]) {
        assert.ok(
          acks.some((one) => one.join() === ack.join()),
          `no ACK ${ack.join()}`,
        );
      }
    });

    it(`UC over ${family}: every operation`, async () => {
      const packets = await capture('uc', (fabric) => playUc(fabric, [active, passive]));
      assertOpcodes(packets, knownCodes(0x20));
    });
  }
});

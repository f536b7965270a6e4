import assert from 'node:assert/strict';
import * as headers from '../../../providers/hca/wire/extended-headers.js';
import * as bth from '../../../core/spi/wire/bth.js';
import * as layout from '../../../core/spi/wire/packet-layout.js';
import { PseudoHeader, icrcPacket, readIcrc, writeIcrc } from '../../../providers/hca/wire/icrc.js';
import { OPCODES } from '../../../core/spi/wire/opcode.js';
import { aethMsn, GOLDEN_PACKETS, bytesOf, hexOf, viewOf } from './golden-packets.js';

interface Split {
  readonly roce: Uint8Array;
  readonly pseudo: PseudoHeader;
  readonly ipId: number;
}

function split(packet: Uint8Array): Split {
  const view = viewOf(packet);
  const isIpv4 = packet[0] === 0x45;
  const udp = isIpv4 ? 20 : 40;
  const [source, destination] = isIpv4
    ? [mapped(packet.subarray(12, 16)), mapped(packet.subarray(16, 20))]
    : [packet.slice(8, 24), packet.slice(24, 40)];
  const pseudo = new PseudoHeader();
  pseudo.setFlow(source, destination, view.getUint16(udp), view.getUint16(udp + 2));
  return { roce: packet.slice(udp + 8), pseudo, ipId: isIpv4 ? view.getUint16(4) : 0 };
}

function mapped(ipv4: Uint8Array): Uint8Array {
  return Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...ipv4);
}

/** Reads every header with its accessors and writes what was read to a buffer of 0xa5. */
function copyByFields(roce: Uint8Array): Uint8Array {
  const from = viewOf(roce);
  const bytes = new Uint8Array(roce.length).fill(0xa5);
  const to = viewOf(bytes);
  const opcode = bth.bthOpcode(from, 0);
  const flags =
    (bth.bthSolicited(from, 0) ? bth.BTH_FLAG.solicited : 0) |
    (from.getUint8(1) & bth.BTH_FLAG.migrated) |
    (bth.bthAckReq(from, 0) ? bth.BTH_FLAG.ackRequest : 0);
  const pad = bth.bthPadCount(from, 0);
  const flagsAndPad = flags | bth.bthPad(4 - pad);
  bth.writeBth(to, 0, opcode, flagsAndPad, bth.bthDestQpn(from, 0), bth.bthPsn(from, 0));
  copyExtensions(from, to, opcode);
  const start = layout.HEADER_LENGTH_OF[opcode] ?? 0;
  const length = layout.payloadLength(from, 0, roce.length - 4);
  bytes.set(roce.subarray(start, start + length), start);
  bytes.fill(0, start + length, start + length + pad);
  return bytes;
}

function copyExtensions(from: DataView, to: DataView, opcode: number): void {
  const at = (table: Uint8Array): number => table[opcode] ?? 0;
  let offset = at(layout.DETH_OFFSET_OF);
  if (offset > 0)
    headers.writeDeth(to, offset, headers.dethQkey(from, offset), headers.dethSrcQpn(from, offset));
  offset = at(layout.RETH_OFFSET_OF);
  if (offset > 0) {
    const va = [headers.rethVaHi(from, offset), headers.rethVaLo(from, offset)] as const;
    headers.writeReth(
      to,
      offset,
      ...va,
      headers.rethRkey(from, offset),
      headers.rethDmaLength(from, offset),
    );
  }
  offset = at(layout.ATOMIC_ETH_OFFSET_OF);
  if (offset > 0) {
    const va = [headers.atomicVaHi(from, offset), headers.atomicVaLo(from, offset)] as const;
    headers.writeAtomicTarget(to, offset, ...va, headers.atomicRkey(from, offset));
    headers.writeAtomicOperands(
      to,
      offset,
      headers.atomicSwapAddHi(from, offset),
      headers.atomicSwapAddLo(from, offset),
      headers.atomicCompareHi(from, offset),
      headers.atomicCompareLo(from, offset),
    );
  }
  offset = at(layout.AETH_OFFSET_OF);
  if (offset > 0)
    headers.writeAeth(to, offset, headers.aethSyndrome(from, offset), aethMsn(from, offset));
  offset = at(layout.ATOMIC_ACK_ETH_OFFSET_OF);
  if (offset > 0) {
    const original = [
      headers.atomicAckHi(from, offset),
      headers.atomicAckLo(from, offset),
    ] as const;
    headers.writeAtomicAckEth(to, offset, ...original);
  }
  offset = at(layout.IMMDT_OFFSET_OF);
  if (offset > 0) to.setUint32(offset, headers.immdtValue(from, offset));
}

describe('golden packets', () => {
  for (const { name, opcode, hex } of GOLDEN_PACKETS) {
    it(`${name}: recognized, its ICRC is right`, () => {
      const { roce, pseudo, ipId } = split(bytesOf(hex));
      const end = roce.length - 4;
      const verdict = layout.checkPacket(viewOf(roce), 0, end);
      assert.equal(verdict, layout.PACKET_CHECK.ok);
      assert.equal(OPCODES[roce[0] ?? 0]?.name, opcode);
      const icrc = icrcPacket(pseudo.begin(roce.length, ipId), roce, 0, end);
      assert.equal(icrc, readIcrc(viewOf(roce), end));
    });

    it(`${name}: written again byte for byte`, () => {
      const { roce, pseudo, ipId } = split(bytesOf(hex));
      const copy = copyByFields(roce);
      const end = roce.length - 4;
      const icrc = icrcPacket(pseudo.begin(roce.length, ipId), copy, 0, end);
      writeIcrc(viewOf(copy), end, icrc);
      assert.equal(hexOf(copy), hexOf(roce));
    });
  }

  it('has the field values that the capture had', () => {
    const write = split(bytesOf(GOLDEN_PACKETS[4]?.hex ?? '')).roce;
    const view = viewOf(write);
    assert.equal(bth.bthDestQpn(view, 0), 0xabcd);
    assert.equal(bth.bthPsn(view, 0), 0x000102);
    assert.equal(bth.bthAckReq(view, 0), true);
    assert.equal(bth.bthPadCount(view, 0), 3);
    assert.equal(bth.bthPkey(view, 0), 0xffff);
    assert.equal(headers.rethVaHi(view, 12), 0);
    assert.equal(headers.rethVaLo(view, 12), 0x2000);
    assert.equal(headers.rethRkey(view, 12), 0x88);
    assert.equal(headers.rethDmaLength(view, 12), 21);
    assert.equal(layout.payloadLength(view, 0, write.length - 4), 21);
    assert.equal(Buffer.from(write.subarray(28, 49)).toString(), 'hello-from-userspace\0');
    const fetchAdd = viewOf(split(bytesOf(GOLDEN_PACKETS[6]?.hex ?? '')).roce);
    assert.equal(headers.atomicVaHi(fetchAdd, 12), 0x561c);
    assert.equal(headers.atomicVaLo(fetchAdd, 12), 0xeb9bb000);
    assert.equal(headers.atomicRkey(fetchAdd, 12), 0x0edc);
    assert.equal(headers.atomicSwapAddLo(fetchAdd, 12), 1);
    const atomicAck = viewOf(split(bytesOf(GOLDEN_PACKETS[7]?.hex ?? '')).roce);
    assert.equal(headers.atomicAckHi(atomicAck, 16), 0xb25d9808);
    assert.equal(headers.atomicAckLo(atomicAck, 16), 0x888f4c0f);
  });
});

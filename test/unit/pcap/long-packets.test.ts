import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { capture } from 'dapl/plugins/pcap';
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { Peer } from '../../../plugins/testing/suite/peer.js';
import { loopback } from '../../support/loopback.js';

const [NEAR, FAR] = [loopback(0, 31), loopback(0, 32)];
const BYTES = 300_001;
const CONN_QUAL = 7000;

interface Packet {
  readonly bytes: Uint8Array;
  readonly comment: string;
}

/** The packets of a capture. */
function packetsOf(file: string): Packet[] {
  const bytes = readFileSync(file);
  const packets: Packet[] = [];
  for (let at = 0; at < bytes.length; at += bytes.readUInt32LE(at + 4)) {
    if (bytes.readUInt32LE(at) !== 6) continue;
    const length = bytes.readUInt32LE(at + 20);
    const options = at + 28 + ((length + 3) & ~3);
    const commented = bytes.readUInt16LE(options) === 1;
    const size = commented ? bytes.readUInt16LE(options + 2) : 0;
    packets.push({
      bytes: bytes.subarray(at + 28, at + 28 + length),
      comment: bytes.toString('utf8', options + 4, options + 4 + size),
    });
  }
  return packets;
}

describe('a capture of what goes through shared memory', () => {
  it('has every packet, and of one that no IP header can state the beginning', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dapl-'));
    const files = ['near', 'far'].map((name) => join(directory, name));
    const open = (address: string, file: string) =>
      openIa(capture(softroce({ addresses: [address] }), { file }));
    const ias = await Promise.all([open(NEAR, files[0]!), open(FAR, files[1]!)]);
    try {
      const [near, far] = ias.map((ia) => new Peer(ia, { lengthBytes: 1 << 19 })) as [Peer, Peer];
      const psp = far.ia.createPsp({ connQual: CONN_QUAL, evd: far.evd });
      near.ep.connect({ address: FAR, connQual: CONN_QUAL });
      far.ep.postRecv([far.lmr.segment()], 1);
      (await far.request()).accept(far.ep);
      await Promise.all([near.expect('ESTABLISHED'), far.expect('ESTABLISHED')]);
      psp.free();
      near.lmr.bytes.fill(0x5a);
      near.ep.postSend([near.lmr.segment(0, BYTES)], 2);
      await Promise.all([near.expect('dto 2 SUCCESS'), far.expect('dto 1 SUCCESS')]);
      assert.ok(near.ia.deviceCounters().channelSent! > 0);
    } finally {
      await Promise.all(ias.map((ia) => ia.close()));
    }
    for (const file of files) {
      const long = packetsOf(file).filter(({ comment }) => comment !== '');
      // On a busy machine it may be sent again before its acknowledgement is looked at.
      assert.ok(long.length >= 1);
      const { bytes, comment } = long[0]!;
      const length = 12 + BYTES + (-BYTES & 3);
      assert.equal(comment, `the beginning of a packet of ${String(length)} bytes from BTH to pad`);
      assert.equal(bytes.length, 28 + 48 + 57_344 + 4);
      const odd = bytes.subarray(40, -4).findIndex((byte) => byte !== 0x5a);
      assert.equal(odd, -1, file);
      // An acknowledgement, which is as short as on the wire.
      assert.ok(packetsOf(file).some((packet) => packet.bytes[28] === 17 && packet.comment === ''));
    }
    rmSync(directory, { recursive: true });
  });
});

// Captures and flight records of real runs, as the ladder shows them.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openIa } from '../../core/index.js';
import { fieldsOf, summaryOf } from '../../plugins/lab/run/dissect.js';
import { flightRecordingOf, recordingOf } from '../../plugins/lab/run/capture.js';
import type { Recording } from '../../plugins/lab/run/recording.js';
import { capture } from '../../plugins/pcap/index.js';
import { Fabric, mock } from '../../providers/mock/index.js';

const CONN_QUAL = 7000;

/** A handshake between two devices that share a capture file. */
async function captured(addresses: readonly [string, string]): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), 'dapl-lab-'));
  const file = join(folder, 'both.pcapng');
  try {
    const fabric = new Fabric({ seed: 3, autoRun: true });
    const [client, server] = await Promise.all(
      addresses.map((address) => openIa(capture(mock({ fabric, address }), { file }))),
    );
    server!.createPsp({ connQual: CONN_QUAL }).requests$.subscribe(({ cr }) => {
      cr.accept(server!.createEndpoint({ pz: server!.createPz() }));
    });
    const ep = client!.createEndpoint({ pz: client!.createPz() });
    const established = new Promise((resolve) => ep.connection$.subscribe(resolve));
    ep.connect({ address: addresses[1], connQual: CONN_QUAL });
    await established;
    await Promise.all([client!.close(), server!.close()]);
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const namesOf = ({ packets }: Recording): string[] =>
  packets.map(({ bytes }) => summaryOf(bytes).name);

describe('a capture in the lab', () => {
  for (const addresses of [
    ['10.0.0.1', '10.0.0.2'],
    ['fd00::1', 'fd00::2'],
  ] as const) {
    it(`pairs what ${addresses[0]} sent with what ${addresses[1]} received`, async () => {
      const recording = recordingOf(await captured(addresses), 'both.pcapng');
      assert.deepEqual(recording.nodes, addresses);
      assert.deepEqual(namesOf(recording).slice(0, 3), ['REQ', 'REP', 'RTU']);
      for (const { fate, arrivals, sentUs } of recording.packets.slice(0, 2)) {
        assert.equal(fate, 'delivered');
        assert.ok(arrivals.length === 1 && arrivals[0]!.timeUs >= sentUs);
      }
    });
  }

  it('has every field of a REQ by its name', async () => {
    const { packets } = recordingOf(await captured(['10.0.0.1', '10.0.0.2']), 'both.pcapng');
    const groups = fieldsOf(packets[0]!.bytes);
    assert.deepEqual(
      groups.map(({ name }) => name),
      ['BTH', 'DETH', 'MAD', 'REQ', 'ICRC'],
    );
    const req = new Map(groups[3]!.fields);
    assert.equal(req.get('retry count'), '7');
    assert.match(req.get('primary local gid')!, /0a 00 00 01$/);
  });

  it('ends at a block that was cut off, and never throws on damaged ones', async () => {
    const whole = await captured(['10.0.0.1', '10.0.0.2']);
    const count = recordingOf(whole, 'x').packets.length;
    const cut = recordingOf(whole.subarray(0, whole.length - 5), 'x').packets.length;
    assert.ok(cut <= count && cut > 0);
    for (let at = 28; at < whole.length; at += 7) {
      const damaged = whole.slice();
      damaged[at] = damaged[at]! ^ 0xff;
      try {
        for (const { bytes } of recordingOf(damaged, 'x').packets) {
          summaryOf(bytes);
          fieldsOf(bytes);
        }
      } catch (error) {
        assert.match((error as Error).message, /has no RoCEv2 packets|is no pcapng file/);
      }
    }
  });

  it('is refused in a sentence if it is none', () => {
    assert.throws(() => recordingOf(new Uint8Array(100), 'x'), /^Error: This is no pcapng file\.$/);
    assert.throws(() => recordingOf(new Uint8Array(3), 'x'), /This is no pcapng file/);
  });

  it('may be a flight record: its lines, with their times', () => {
    const record = 'the connection broke:\n  +0.000 ms REQ sent\n  +12.500 ms REP: REQ_SENT\n';
    const { lines, endUs } = flightRecordingOf(record, 'x');
    assert.deepEqual(
      lines.map(({ timeUs, text }) => [timeUs, text]),
      [
        [0, 'REQ sent'],
        [12_500, 'REP: REQ_SENT'],
      ],
    );
    assert.equal(endUs, 12_500);
    assert.throws(() => flightRecordingOf('hello', 'x'), /neither a pcapng file nor a flight/);
  });
});

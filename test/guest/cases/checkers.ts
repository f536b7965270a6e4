// Checks of the checkers: what finds nothing in a broken packet proves nothing.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { icrcFault } from '../icrc.js';
import { readPcap, writePcap } from '../pcap.js';
import { runDir } from '../sandbox.js';
import { dissect } from '../tshark.js';

/** Flips one bit of each covered byte in turn: each packet must turn bad. */
export function assertIcrcCheckNotices(file: string): void {
  for (const frame of readPcap(file).slice(0, 20)) {
    const covered = [14 + 4, 14 + 12, frame.length - 5, frame.length - 1];
    for (const offset of covered) {
      const broken = Buffer.from(frame);
      broken[offset] = (broken[offset] ?? 0) ^ 0x10;
      assert.notEqual(
        icrcFault(broken),
        undefined,
        `a flipped bit in byte ${offset} goes unnoticed`,
      );
    }
  }
}

/** Cuts the first CM message short: tshark must call it malformed. */
export async function assertTsharkNotices(file: string): Promise<void> {
  const [request] = readPcap(file);
  assert.ok(request !== undefined);
  const cut = join(runDir, 'cut.pcap');
  writePcap(cut, [request.subarray(0, 120)]);
  const [packet] = await dissect(cut);
  assert.equal(packet?.isMalformed, true, 'tshark finds nothing wrong with half a REQ');
}

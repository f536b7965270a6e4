// More bytes than a view of memory has in this version of Node.js: an error of ours, in every call.

import assert from 'node:assert/strict';
import { constants } from 'node:buffer';
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatError, MemType } from '../../../core/index.js';
import { SpiError } from '../../../core/spi/index.js';
import { mapFile } from '../../../providers/host/mapped-memory.js';
import { openFake } from '../../support/fake-provider.js';
import { leaveOut } from '../../support/left-out.js';

const MOST = constants.MAX_LENGTH;
const FIVE_GIB = 5 * 2 ** 30;

const refusal = (code: string) => (error: unknown) =>
  DatError.isDatError(error) &&
  error.code === code &&
  error.message.includes(String(FIVE_GIB)) &&
  error.message.includes(String(MOST));

describe('5 GiB', () => {
  before(function () {
    // From Node 22 on a view has as many bytes as there is memory for: no such length is refused.
    if (MOST > FIVE_GIB)
      leaveOut(this, 'a view of 5 GiB is allowed here', 'with Node 20: npm test');
  });

  it('are too many to allocate, to have mapped and to ask about', async () => {
    const { ia } = await openFake();
    const pz = ia.createPz();
    const wrong = refusal('DAT_INVALID_PARAMETER');
    assert.throws(() => ia.allocate(FIVE_GIB, { pz }), wrong);
    assert.throws(() => ia.mapFile(0, { pz, lengthBytes: FIVE_GIB }), wrong);
    assert.throws(() => ia.memTypeHint(MemType.VIRTUAL, FIVE_GIB), wrong);
    assert.equal(ia.query().ia.maxLmrBlockSize, MOST);
    await ia.close();
  });

  it('are too many to register, as a buffer and as a view of one', async () => {
    const { ia } = await openFake();
    const pz = ia.createPz();
    // Pages that nothing touches are not there.
    const buffer = new ArrayBuffer(FIVE_GIB);
    for (const memory of [buffer, new DataView(buffer)]) {
      assert.throws(() => ia.createLmr(memory, { pz }), refusal('DAT_LENGTH_ERROR'));
    }
    const last = ia.createLmr(new Uint8Array(buffer, FIVE_GIB - 8, 8), { pz });
    assert.equal(last.lengthBytes, 8);
    await ia.close();
  });

  it('of a file are refused before anything is mapped', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dapl-large-'));
    const fd = openSync(join(folder, 'sparse'), 'w+');
    try {
      ftruncateSync(fd, FIVE_GIB);
      const mapped: number[] = [];
      const mapper = {
        mapFile: (_fd: number, offsetBytes: number): Uint8Array => {
          mapped.push(offsetBytes);
          return new Uint8Array(1);
        },
      };
      const map = (offsetBytes: number, lengthBytes?: number): Uint8Array =>
        mapFile(mapper, { fd, offsetBytes, lengthBytes, shared: true });
      const tooLong = (error: unknown): boolean =>
        error instanceof SpiError &&
        error.code === 'EOVERFLOW' &&
        error.message.includes(`${FIVE_GIB} bytes`);
      assert.throws(() => map(0), tooLong);
      assert.throws(() => map(0, FIVE_GIB), tooLong);
      map(2 ** 30);
      map(0, 8);
      assert.deepEqual(mapped, [2 ** 30, 0]);
    } finally {
      closeSync(fd);
      rmSync(folder, { recursive: true });
    }
  });
});

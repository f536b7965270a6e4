import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { argumentSubtype } from '../../../core/errors/call-arguments.js';
import { checkFields, checkPrivateData, invalid } from '../../../core/errors/guards.js';
import { DatError } from '../../../core/errors/index.js';
import { integer } from '../../../core/spi/checks/index.js';

const core = join(import.meta.dirname, '../../../../core');

const subtypeOf = (run: () => unknown): string | undefined => {
  try {
    run();
  } catch (error) {
    if (DatError.isDatError(error)) return error.subtype;
  }
  return undefined;
};

describe('arguments of calls', () => {
  // dat_ep_connect, dat_ep_post_rdma_write, dat_evd_modify_upcall of udat.h.
  it("are counted as in DAT's prototypes", () => {
    for (const [operation, name, position] of [
      ['ep.connect', 'connQual', 3],
      ['ep.connect', 'privateData', 6],
      ['ep.connect', 'flags', 8],
      ['ep.postRdmaWrite', 'remote.address', 5],
      ['ep.postFetchAdd', 'count', 3],
      ['evd.modifyUpcall', 'policy', 2],
      ['evd.modifyUpcall', 'limit', 4],
    ] as const) {
      assert.equal(argumentSubtype(operation, name), `DAT_INVALID_ARG${position}`, name);
    }
  });

  it('are found by the name of an option, of a part, or of what it belongs to', () => {
    const part = (): never => {
      throw invalid('ia.createEndpoint', 'transport.retryCount', 9, '0 to 7', 'attributes');
    };
    assert.equal(subtypeOf(part), 'DAT_INVALID_ARG6');
    const fields = (): void => checkFields('receives', { buffers: 0 }, { buffers: integer(1, 9) });
    assert.equal(subtypeOf(fields), 'DAT_INVALID_ARG2');
    const data = (size: number) => (): unknown =>
      checkPrivateData('ep.connect', new Uint8Array(size), 4);
    assert.equal(subtypeOf(data(5)), 'DAT_INVALID_ARG5', 'the number of bytes comes first');
    assert.equal(subtypeOf(data(4)), undefined);
  });

  it('have to be in the table', () => {
    assert.throws(() => argumentSubtype('ep.fly', 'wings'), /a call has the argument/);
    assert.throws(() => argumentSubtype('ep.disconnect', 'wings'), /a call has the argument/);
  });

  it('are numbered nowhere else in the objects of DAT', () => {
    const byHand = ['dat', 'evd', 'rx'].flatMap((room) =>
      readdirSync(join(core, room), { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.ts'))
        .filter((path) => /DAT_INVALID_ARG\d/.test(readFileSync(join(core, room, path), 'utf8'))),
    );
    assert.deepEqual(byHand, []);
  });
});

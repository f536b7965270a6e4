import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TransferFailure } from '../../../../samples/transfer/failure.js';
import { PartialFile } from '../../../../samples/transfer/partial-file.js';

describe('transfer: the name that a stranger sends', () => {
  const { signal } = new AbortController();
  let outside: string;
  let directory: string;

  beforeEach(async () => {
    outside = await mkdtemp(join(tmpdir(), 'dapl-test-partial-'));
    directory = join(outside, 'inside');
    await mkdir(directory);
  });
  afterEach(() => rm(outside, { recursive: true }));

  for (const name of ['', '.', '..', '../..', '/', 'a\0b']) {
    it(`refuses ${JSON.stringify(name)}`, async () => {
      await assert.rejects(PartialFile.open(directory, name, 1, signal), TransferFailure);
      assert.deepEqual(await readdir(outside, { recursive: true }), ['inside']);
    });
  }

  it('takes the last component of a path', async () => {
    const file = await PartialFile.open(directory, '../../etc/passwd', 1, signal);
    await file.append(Uint8Array.of(1));
    await file.finish();
    assert.deepEqual(await readdir(outside, { recursive: true }), ['inside', 'inside/passwd']);
  });
});

// A capture that is there goes on: its header once, its packets kept. What is no capture is left.

import assert from 'node:assert/strict';
import { linkSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatError, type Ia, openIa } from 'dapl';
import { capture } from 'dapl/plugins/pcap';
import { Fabric, mock } from 'dapl/providers/mock';
import { CaptureReader } from '../../../plugins/pcap/capture-reader.js';
import { BlockType, interfaceDescription, sectionHeader } from '../../../plugins/pcap/pcapng.js';
import { talk } from '../../support/captured-pairs.js';

/** Types of the blocks, and the interface of each packet. */
function read(file: string): { readonly types: number[]; readonly interfaces: number[] } {
  const reader = new CaptureReader(file);
  const types: number[] = [];
  const interfaces: number[] = [];
  for (let block = reader.next(); block !== undefined; block = reader.next()) {
    types.push(block.type);
    if (block.type === BlockType.ENHANCED_PACKET) interfaces.push(block.bytes.getUint32(8, true));
  }
  reader.close();
  assert.equal(reader.offset, readFileSync(file).length, 'nothing is behind the last block');
  return { types, interfaces };
}

const count = (list: readonly number[], value: number): number =>
  list.filter((each) => each === value).length;

describe('a capture that is opened again', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-pcap-'));
    file = join(folder, 'out.pcapng');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  async function converse(path = file): Promise<void> {
    const fabric = new Fabric({ autoRun: true });
    const open = (address: string): Promise<Ia> => openIa(mock({ fabric, address }));
    const from = await openIa(capture(mock({ fabric, address: '10.0.0.1' }), { file: path }));
    await talk(from, await open('10.0.0.2'));
  }

  const refused = (why: RegExp): Promise<void> =>
    assert.rejects(converse(), (error) => DatError.isDatError(error) && why.test(error.message));

  it('has one header, all packets, and one more interface', async () => {
    await converse();
    const first = readFileSync(file);
    const before = read(file);
    await converse();
    const after = read(file);
    assert.deepEqual(readFileSync(file).subarray(0, first.length), first);
    assert.equal(count(after.types, BlockType.SECTION_HEADER), 1);
    assert.equal(count(after.types, BlockType.INTERFACE_DESCRIPTION), 2);
    assert.equal(count(before.interfaces, 0), before.interfaces.length);
    assert.equal(count(after.interfaces, 0), before.interfaces.length);
    assert.ok(count(after.interfaces, 1) > 0);
  });

  it('is one file by whatever path it is named', async () => {
    const fabric = new Fabric({ autoRun: true });
    const other = join(folder, 'other.pcapng');
    const tapped = (address: string, path: string): Promise<Ia> =>
      openIa(capture(mock({ fabric, address }), { file: path }));
    const one = await tapped('10.0.0.1', file);
    linkSync(file, other);
    await talk(one, await tapped('10.0.0.2', other));
    const { types, interfaces } = read(file);
    assert.equal(count(types, BlockType.SECTION_HEADER), 1);
    assert.ok(count(interfaces, 0) > 0 && count(interfaces, 1) > 0);
  });

  it('begins in a file that is empty', async () => {
    writeFileSync(file, '');
    await converse();
    assert.equal(read(file).types[0], BlockType.SECTION_HEADER);
  });

  it('loses the part of a block that a killed writer has left, and nothing else', async () => {
    await converse();
    const whole = readFileSync(file);
    for (const left of [1, 7, 11, 40]) {
      // A packet block of 64 KiB of which that much has been written.
      const part = Buffer.alloc(left);
      Buffer.from([6, 0, 0, 0, 0, 0, 1, 0]).copy(part);
      writeFileSync(file, Buffer.concat([whole, part]));
      await converse();
      assert.deepEqual(readFileSync(file).subarray(0, whole.length), whole);
      assert.equal(count(read(file).types, BlockType.INTERFACE_DESCRIPTION), 2);
    }
  });

  const fixed = sectionHeader('x');
  new DataView(fixed.buffer).setBigInt64(16, 100n, true);
  const swapped = Uint8Array.from(sectionHeader('x'));
  new DataView(swapped.buffer).setUint32(8, 0x1a2b3c4d);
  const ours = Buffer.concat([sectionHeader('x'), interfaceDescription('y')]);
  const BAD: Readonly<Record<string, readonly [Uint8Array, RegExp]>> = {
    'no pcapng': [
      Buffer.from('a letter to somebody, of some length'),
      /it is no pcapng file\. Move it away/,
    ],
    'an old pcap': [
      Buffer.from('d4c3b2a1020004000000000000000000', 'hex'),
      /it is no pcapng file\. Move it away/,
    ],
    'shorter than a block': [Buffer.from([10, 13, 13, 10]), /it is no pcapng file\. Move it away/],
    'a block without a section': [
      interfaceDescription('x'),
      /is no pcapng file that can be continued\. Move it away/,
    ],
    'of the other byte order': [swapped, /is no pcapng file that can be continued\. Move it away/],
    'a section of a stated length': [
      fixed,
      /is no pcapng file that can be continued\. Move it away/,
    ],
    'damaged far from its end': [
      Buffer.concat([ours, Buffer.alloc(1 << 19)]),
      new RegExp(`it is damaged ${ours.length} bytes from its beginning`),
    ],
  };
  for (const [name, [bytes, why]] of Object.entries(BAD)) {
    it(`is refused and left as it is: ${name}`, async () => {
      writeFileSync(file, bytes);
      await refused(why);
      assert.deepEqual(readFileSync(file), Buffer.from(bytes));
    });
  }
});

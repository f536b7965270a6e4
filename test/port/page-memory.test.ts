import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import { loopback, testPort } from '../support/loopback.js';

const KIB = 1024;
const HUGE_KIB = 2 * KIB;

interface Mapping {
  readonly firstKib: number;
  readonly kib: number;
}

/** Mappings of this process that the system was advised to make of huge pages. */
function hugeMappings(): Mapping[] {
  const text = readFileSync('/proc/self/smaps', 'utf8');
  return text
    .split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
    .filter((mapping) => /^VmFlags:.* hg\b/m.test(mapping))
    .map((mapping) => {
      const [first = 0, end = 0] = mapping.split(/[- ]/, 2).map((at) => parseInt(at, 16) / KIB);
      return { firstKib: first, kib: end - first };
    });
}

const sum = (mappings: readonly Mapping[]): number =>
  mappings.reduce((kib, mapping) => kib + mapping.kib, 0);

describe('memory of the native port', () => {
  let port: SocketPort;
  before(() => {
    port = openNativePort({ addresses: [loopback(0, 21)], udpPort: testPort(11), shm: false });
  });
  after(() => port.close());

  const allocate = (bytes: number): Uint8Array => new Uint8Array(port.allocate!(bytes));

  it('lies in huge pages from their size on, with no page too many', () => {
    const earlier = hugeMappings();
    const bytes = allocate(5 * KIB * KIB + 100);
    const now = hugeMappings();
    assert.equal(sum(now) - sum(earlier), 5 * KIB + 4);
    const isNew = ({ firstKib }: Mapping): boolean =>
      !earlier.some((mapping) => mapping.firstKib === firstKib);
    for (const { firstKib } of now.filter(isNew)) assert.equal(firstKib % HUGE_KIB, 0);
    assert.equal(bytes.length, 5 * KIB * KIB + 100);
    assert.ok(bytes.every((byte) => byte === 0));
    bytes.fill(7);
    assert.equal(bytes.at(-1), 7);
  });

  it('is as anybody else has it below that, and when it cannot be had', () => {
    const earlier = sum(hugeMappings());
    assert.equal(allocate(0).length, 0);
    assert.equal(allocate(2 * KIB * KIB - 1).length, 2 * KIB * KIB - 1);
    assert.throws(() => allocate(2 ** 53), RangeError);
    assert.equal(sum(hugeMappings()), earlier);
  });
});

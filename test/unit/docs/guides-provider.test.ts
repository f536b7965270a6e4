// docs/guides/write-a-provider.md: the package works, and its suite names the usual mistakes.

import assert from 'node:assert/strict';
import { Fabric, mock } from 'dapl/providers/mock';
import { runDevice } from 'dapl/testing';
import { blocksOf } from '../../support/guide-page.js';
import { providerGuide, providerPackage } from '../../support/provider-guide.js';

/** What is changed in the port for each mistake that the page lists. */
const MISTAKES: Readonly<Record<string, readonly [text: string, replacement: string]>> = {
  'only the first segment is sent': [
    'const end = first + txPackets[at + TX.SEGMENT_COUNT];',
    'const end = first + Math.min(1, txPackets[at + TX.SEGMENT_COUNT]);',
  ],
  'the pad behind the payload is left out': ['Buffer.alloc(pad)', 'Buffer.alloc(0)'],
  '`send` begins at 0, whatever `from` is': ['for (let i = from;', 'for (let i = 0;'],
  'what the arrays cannot hold is thrown away': [
    'this.#inbox.splice(0, PACKETS)',
    'this.#inbox.splice(0).slice(0, PACKETS)',
  ],
  'a handler is called inside a call': [
    'if (alive) this.#bus.ref();',
    'if (alive) this.#handlers?.onReadable();',
  ],
  '`removeRegion` throws when all is closed': [
    'if (!this.#isClosed) this.#regions',
    'this.#regions',
  ],
  'a path ends with the first user that lets go': [
    'this.#paths.remove(path)) this',
    '(this.#paths.remove(path), true)) this',
  ],
  'headers of any length are taken': [
    'header < 12 || header > HEADER_BYTES || header % 4 !== 0',
    '!1',
  ],
  'packets do not say that they are of IPv6': ['isIpv4Gid(source) ? 0 : RxFlags.IPV6', '0'],
};

/** Rows of a table of mistakes: what it is, and what names it. */
function rowsUnder(heading: string): [mistake: string, behaviour: string][] {
  const [, table = ''] = providerGuide.split(heading);
  const [rows = ''] = table.split('\n\n## ');
  return [...rows.matchAll(/^\| (.+) \| `(.+)` \|$/gm)].map(([, what = '', by = '']) => [what, by]);
}

describe('docs/guides, write a provider', () => {
  const folder = providerPackage();
  // What a mistake keeps from coming need not be waited for long.
  const impatient = { DAPL_TEST_PATIENCE_MS: '1000' };

  it('has programs that open it by name, and write what stands below them', async () => {
    for (const name of ['app.mjs', 'wrapped.mjs']) {
      const [, below = ''] = providerGuide.split(`\`${name}\`:`);
      const [printed] = blocksOf(below, 'text');
      assert.deepEqual(await folder.run([name]), { stdout: printed, stderr: '' });
    }
  });

  it('has a port that passes its suite, whose report it shows', async () => {
    const { stdout } = await folder.run(['conformance.mjs', 'port']);
    assert.ok(blocksOf(providerGuide, 'text').includes(stdout), stdout);
  });

  for (const [mistake, behaviour] of rowsUnder('## Nine mistakes of ports')) {
    it(`has a suite that names it: ${mistake}`, async () => {
      const [text = '', replacement] = MISTAKES[mistake] ?? [];
      const args = ['conformance.mjs', 'port', behaviour];
      const wrong = providerPackage(text, replacement).run(args, impatient);
      await assert.rejects(wrong, ({ stdout }: { readonly stdout: string }) => {
        const failed = stdout.split('\n').filter((line) => line.startsWith('FAILED'));
        assert.ok(
          failed.some((line) => line.includes(`: ${behaviour}`)),
          stdout,
        );
        return true;
      });
    });
  }

  it('has nine of them, and nine of devices, whose behaviours there are', async () => {
    assert.deepEqual(
      rowsUnder('## Nine mistakes of ports').map(([what]) => what),
      Object.keys(MISTAKES),
    );
    const ofDevices = rowsUnder('## A device without the HCA').map(([, behaviour]) => behaviour);
    assert.equal(ofDevices.length, 9);
    const openPair = async () => {
      const fabric = new Fabric({ seed: 1, autoRun: true });
      const [active, passive] = ['192.0.2.1', '192.0.2.2'].map((address) =>
        mock({ fabric, address }),
      );
      return { active: active!, passive: passive! };
    };
    const filter = (title: string): boolean => ofDevices.some((name) => title.startsWith(name));
    const results = await runDevice({ capabilities: [], openPair }, { filter });
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      Array(9).fill('passed'),
    );
  });
});

// docs/guides/write-a-ulp.md: the protocol passes its tests and its simulator, and the
// simulator finds mistakes that are put in.

import assert from 'node:assert/strict';
import { guide, ProgramFolder } from '../../support/guide-page.js';

const page = guide('write-a-ulp');

/** The programs of the page, with one text in place of another. */
function folderWith(text: string, replacement: string): ProgramFolder {
  const changed = page.replace(text, () => replacement);
  assert.notEqual(changed, page, `the page has no ${text}`);
  return new ProgramFolder().addAll(changed);
}

describe('docs/guides, write a ULP', () => {
  const folder = new ProgramFolder().addAll(page);

  it('has layers that pass their tests', async () => {
    const { stdout } = await folder.run(['--test', '--test-reporter=tap', 'layers.test.mjs']);
    assert.match(stdout, /^# pass 3\n# fail 0$/m);
  });

  it('has a simulator that finds nothing', async () => {
    const { stdout, stderr } = await folder.run(['sim.mjs', '1', '4']);
    const lines = [...stdout.matchAll(/^seed (\d): (\d+) right, (\d+) failed$/gm)].map(
      ([, seed, right, failed]) => [Number(seed), Number(right) + Number(failed)],
    );
    assert.deepEqual(
      lines,
      [1, 2, 3, 4].map((seed) => [seed, 100]),
    );
    assert.match(stdout, /^seed 3: 100 right, 0 failed$/m);
    assert.match(stdout, /^seed 2: \d+ right, [1-9]\d* failed$/m);
    assert.equal(stderr, '');
  });

  const send = 'conn.send(encode(session.answer(id, value?.length)))';
  for (const [mistake, text, replacement, found] of [
    ['a credit that does not come back', 'this.credits++;', '', /a request never ends/],
    ['a request without a credit', 'this.credits > 0 &&', '', /the connection is closed/],
    [
      'an answer ahead of its value',
      '    const written =',
      `    await ${send};\n    const written =`,
      /Expected values to be strictly deep-equal/,
    ],
  ] as const) {
    it(`has a simulator that finds ${mistake}`, async () => {
      const failed = folderWith(text, replacement).run(['sim.mjs', '1', '1']);
      await assert.rejects(failed, ({ stderr }: { readonly stderr: string }) => {
        assert.match(stderr, found);
        return true;
      });
    });
  }
});

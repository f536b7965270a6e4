// docs/guides/rdma-in-an-hour.md: each program writes the output below it, with its packets.

import assert from 'node:assert/strict';
import { OPCODE_NAMES } from '../../../providers/mock/index.js';
import { longIt } from '../../support/lane.js';
import { guide, ProgramFolder } from '../../support/guide-page.js';

const page = guide('rdma-in-an-hour');

/** Name and output of each program that has one. */
const blocks = page.matchAll(
  /^`([\w-]+\.mjs)`:\n\n```js\n(?:(?!^```)[^])*```\n\n```text\n((?:(?!^```)[^])*)```/gm,
);
const programs = [...blocks].map(([, name = '', output = '']) => ({ name, output }));

describe('docs/guides, RDMA in an hour', () => {
  const folder = new ProgramFolder().addAll(page);

  it('has eight programs', () => {
    assert.equal(programs.length, 8);
  });

  it('names packets as the fault grammar does', () => {
    const [, table = ''] = /const RC = \[([^]*?)\n\];/.exec(page) ?? [];
    const names = [...table.matchAll(/\['(\w+)'/g)].map(([, name]) => `RC_${name}`);
    assert.deepEqual(names, OPCODE_NAMES.slice(0, names.length));
    assert.equal(names.length, 21);
  });

  for (const { name, output } of programs) {
    it(`${name} writes what the page says, and its packets`, async () => {
      assert.deepEqual(await folder.run([name]), { stdout: output, stderr: '' });
    });

    longIt(`${name} comes to the same over UDP`, async () => {
      const { stdout, stderr } = await folder.run([name, 'softroce']);
      const isResult = (line: string): boolean => !line.includes('->');
      assert.deepEqual(stdout.split('\n').filter(isResult), output.split('\n').filter(isResult));
      assert.equal(stderr, '');
    });
  }
});

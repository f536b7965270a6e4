// docs/guides/faults.md and faults-of-peers.md: every recipe is a test that passes, and whose fault
// came about.

import assert from 'node:assert/strict';
import { blocksOf, guide, ProgramFolder } from '../../support/guide-page.js';

const [scene = '', ...first] = blocksOf(guide('faults'), 'js');
const second = blocksOf(guide('faults-of-peers'), 'js');

/** Runs recipes behind the scene. @returns the lines of TAP that say how a test has ended */
async function outcomes(recipes: readonly string[]): Promise<string[]> {
  const folder = new ProgramFolder().add('faults.test.mjs', [scene, ...recipes].join('\n'));
  const { stdout } = await folder.run(['--test', '--test-reporter=tap', 'faults.test.mjs']);
  return [...stdout.matchAll(/^ *(not ok|ok) \d+ - (?!faults)(.*)$/gm)].map(
    ([, ok, name]) => `${ok} ${name}`,
  );
}

/** The names of the tests, as the blocks have them. */
function namesOf(recipes: readonly string[]): string[] {
  return recipes.map((code) => `ok ${/^test\('(.*)', /m.exec(code)?.[1]}`);
}

describe('docs/guides, faults in your tests', () => {
  it('has ten recipes for networks, each a test', async () => {
    assert.equal(first.length, 10);
    assert.deepEqual(await outcomes(first), namesOf(first));
  });

  it('has ten for peers, devices and mistakes', async () => {
    assert.equal(second.length, 10);
    assert.deepEqual(await outcomes(second), namesOf(second));
  });

  it('notices a recipe that fails, and a fault that never came about', async () => {
    const wrong = `test('wrong', () => assert.equal(1, 2));\n`;
    const rule = '{ match: { psn: 1 }, action: drop }';
    const idle = `test('idle', () => void fabric.faults.add(${rule}));\n`;
    await assert.rejects(outcomes([wrong, idle]), ({ stdout }: { readonly stdout: string }) =>
      /expected: 2[^]*hit nothing/.test(stdout),
    );
  });
});

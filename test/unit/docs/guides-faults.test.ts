// docs/guides/faults.md: every recipe is a test that passes, and whose fault happened.

import assert from 'node:assert/strict';
import { blocksOf, guide, ProgramFolder } from '../../support/guide-page.js';

const [scene = '', ...recipes] = blocksOf(guide('faults'), 'js');

/** Runs recipes after the scene. @returns the lines of TAP with the results of the tests */
async function outcomes(tests: readonly string[]): Promise<string[]> {
  const folder = new ProgramFolder().add('faults.test.mjs', [scene, ...tests].join('\n'));
  const { stdout } = await folder.run(['--test', '--test-reporter=tap', 'faults.test.mjs']);
  return [...stdout.matchAll(/^ *(not ok|ok) \d+ - (?!faults)(.*)$/gm)].map(
    ([, ok, name]) => `${ok} ${name}`,
  );
}

/** The names of the tests, as the blocks have them. */
function namesOf(tests: readonly string[]): string[] {
  return tests.map((code) => `ok ${/^test\('(.*)', /m.exec(code)?.[1]}`);
}

describe('docs/guides, faults in your tests', () => {
  it('has twenty recipes, each a test', async () => {
    assert.equal(recipes.length, 20);
    assert.deepEqual(await outcomes(recipes), namesOf(recipes));
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

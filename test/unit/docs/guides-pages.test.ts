// docs/guides: every block of code is a file that a test runs.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf, guide } from '../../support/guide-page.js';

/** All blocks of this page are one file: guides-faults.test.ts. */
const WHOLE = 'faults';

const folder = join(import.meta.dirname, '../../../../docs/guides');
const names = readdirSync(folder).map((name) => name.replace(/\.md$/, ''));
const texts = new Map(names.map((name) => [name, guide(name)]));

/** Languages of the blocks whose code no test would run. */
function notRun(name: string, text: string): string[] {
  const languages = [...text.matchAll(/^```(\w*)\n[^]*?^```$/gm)].map(([, name = '']) => name);
  const others = languages.filter(
    (language) => !['js', 'json', 'text', 'mermaid'].includes(language),
  );
  const named = [...text.matchAll(/^`[\w.-]+`:\n\n```js(?:on)?$/gm)];
  const code = [...blocksOf(text, 'js'), ...blocksOf(text, 'json')];
  const unnamed = name === WHOLE ? 0 : code.length - named.length;
  return [...others, ...Array.from({ length: unnamed }, () => 'code without a name')];
}

describe('docs/guides, all pages', () => {
  it('have no code that is not run', () => {
    assert.ok(texts.size >= 14);
    const problems = [...texts].flatMap(([name, text]) => notRun(name, text));
    assert.deepEqual(problems, []);
    assert.deepEqual(notRun('planted', '```sh\nls\n```\n\n```js\nx;\n```\n'), [
      'sh',
      'code without a name',
    ]);
  });
});

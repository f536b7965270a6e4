// docs/guides: every program prints what stands below it, and nothing else is shown as code.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { patience } from '../support/patience.js';
import { asPrinted, folderOf } from '../support/printed-program.js';
import { type GuideProgram, guideText, languagesOf, programsOf } from './guide-programs.js';

const PAGES = [
  'concepts',
  'connections',
  'errors',
  'events',
  'first-transfer',
  'from-other-apis',
  'memory',
];
const MOST_LINES = 200;
const LANGUAGES = ['js', 'text', 'mermaid'];
/** It waits for the program behind it, which is its peer. */
const RECEIVER = 'receiver.mjs';

const programs = new Map(PAGES.map((page) => [page, programsOf(guideText(page))]));
const all = [...programs.values()].flat();

describe('docs/guides', () => {
  let folder = '';
  before(() => {
    const files = new Map(all.map(({ file, code }) => [file, code]));
    assert.equal(files.size, all.length, 'two programs have one name');
    folder = folderOf(files, 'guides');
  });

  /** @throws what execFile does when it fails */
  async function run({ file, prints }: GuideProgram): Promise<void> {
    const timeout = patience(60_000);
    const path = join(folder, file);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [path], { timeout });
    assert.deepEqual({ stdout: asPrinted(stdout), stderr }, { stdout: prints, stderr: '' });
  }

  async function runBoth(receiver: GuideProgram, sender: GuideProgram): Promise<void> {
    const child = spawn(process.execPath, [join(folder, receiver.file)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: patience(60_000),
    });
    const closed = once(child, 'close');
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
    try {
      await Promise.race([once(child.stdout, 'data'), closed]);
      await run(sender);
      assert.deepEqual(await closed, [0, null]);
    } finally {
      child.kill();
    }
    assert.equal(asPrinted(text), receiver.prints);
  }

  for (const [page, ofPage] of programs) {
    describe(`${page}.md`, () => {
      for (const [i, program] of ofPage.entries()) {
        const { file, prints } = program;
        if (prints === undefined || ofPage[i - 1]?.file === RECEIVER) continue;
        const peer = ofPage[i + 1];
        if (file === RECEIVER && peer !== undefined) {
          it(`${file} and ${peer.file} print what stands below them`, () => runBoth(program, peer));
        } else {
          it(`${file} prints what stands below it`, () => run(program));
        }
      }

      it(`has ${MOST_LINES} lines at most, and blocks of known kinds`, () => {
        const text = guideText(page);
        const lines = text.trimEnd().split('\n').length;
        assert.ok(lines <= MOST_LINES, `${lines} lines`);
        const unknown = languagesOf(text).filter((language) => !LANGUAGES.includes(language));
        assert.deepEqual(unknown, []);
      });
    });
  }

  it('has no module that none of its programs imports', () => {
    const unused = all.filter(
      ({ file, prints }) =>
        prints === undefined && !all.some(({ code }) => code.includes(`from './${file}'`)),
    );
    assert.deepEqual(unused, []);
  });

  it('is read as it is written', () => {
    const [one, two] = ['// one.mjs\nlet a;\n', '// two.mjs\n'];
    const block = (language: string, code: string): string => `\`\`\`${language}\n${code}\`\`\`\n`;
    const page = [
      block('js', one),
      block('text', '1\n'),
      block('js', two),
      'and\n',
      block('text', 'a picture\n'),
    ].join('\n');
    assert.deepEqual(programsOf(page), [
      { file: 'one.mjs', code: one, prints: '1\n' },
      { file: 'two.mjs', code: two, prints: undefined },
    ]);
    assert.deepEqual(languagesOf(page), ['js', 'text', 'js', 'text']);
    assert.throws(() => programsOf('```js\nlet a;\n```\n'), /does not say the name of its file/);
  });
});

// docs/discussions.md: every question of the discussions has an answer and tests that exist.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';

interface Named {
  readonly file: string;
  /** Titles from the outer `describe` to the `it`, with spaces between them, as mocha has it. */
  readonly title: string;
}

interface Question {
  readonly discussion: string;
  readonly title: string;
  readonly answer: string;
  readonly tests: readonly Named[];
}

interface Report {
  readonly tests: readonly { readonly fullTitle: string; readonly file: string }[];
  readonly pending: readonly { readonly fullTitle: string }[];
}

const root = join(import.meta.dirname, '../../..');
const page = readFileSync(join(root, 'docs/discussions.md'), 'utf8');

function questionsOf(markdown: string): Question[] {
  return markdown.split(/^## /m).flatMap((section) => {
    const [discussion = '', ...questions] = section.split(/^### /m);
    return questions.map((text): Question => {
      const [title = '', ...lines] = text.trimEnd().split('\n');
      const items = lines.filter((line) => line.startsWith('- '));
      const answer = lines.filter((line) => !line.startsWith('- '));
      return {
        discussion: discussion.split('\n')[0] ?? '',
        title,
        answer: answer.join(' ').trim(),
        tests: items.map(testOf),
      };
    });
  });
}

function testOf(line: string): Named {
  const [, file = '', titles = ''] = /^- `(test\/\S+\.test\.ts)`: (.+)$/.exec(line) ?? [];
  assert.ok(file && titles.includes(' › '), `not a test: ${line}`);
  return { file, title: titles.replaceAll(' › ', ' ') };
}

/** What mocha would run of these files: titles that are put together by the code included. */
async function titlesOf(files: readonly string[]): Promise<Report> {
  const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js');
  const compiled = files.map((file) => join('dist', file.replace(/\.ts$/, '.js')));
  const options = ['--dry-run', '--forbid-only', '--reporter', 'json'];
  const { stdout } = await promisify(execFile)(process.execPath, [mocha, ...options, ...compiled], {
    cwd: root,
    maxBuffer: 64 * 2 ** 20,
  });
  return JSON.parse(stdout.slice(stdout.indexOf('{'))) as Report;
}

describe('docs/discussions.md', () => {
  const questions = questionsOf(page);

  it('has the five discussions, by year, and their questions, numbered', () => {
    const sections = [...new Set(questions.map(({ discussion }) => discussion))];
    const years = sections.map((name) => /\d{4}(?=\)$)/.exec(name)?.[0]);
    assert.deepEqual(years, ['2004', '2005', '2006', '2007', '2010']);
    const expected = sections.flatMap((name, i) => {
      const { length } = questions.filter(({ discussion }) => discussion === name);
      return Array.from({ length }, (_, j) => `${i + 1}.${j + 1}`);
    });
    assert.deepEqual(
      questions.map(({ title }) => title.split(' ')[0]),
      expected,
    );
    assert.deepEqual(
      questions.filter(({ title }) => !title.endsWith('?')),
      [],
    );
  });

  it('answers every question, and names at least one test for it', () => {
    for (const { title, answer, tests } of questions) {
      assert.ok(answer.length >= 60, `no answer: ${title}`);
      assert.ok(tests.length > 0, `no test: ${title}`);
    }
  });

  it('names tests that are there', async function () {
    this.timeout(120_000);
    const tests = questions.flatMap((question) => question.tests);
    const files = [...new Set(tests.map(({ file }) => file))];
    for (const file of files) assert.ok(existsSync(join(root, file)), `no file: ${file}`);
    const report = await titlesOf(files);
    assert.ok(report.tests.length > questions.length);
    const skipped = new Set(report.pending.map(({ fullTitle }) => fullTitle));
    const present = new Set(
      report.tests
        .filter(({ fullTitle }) => !skipped.has(fullTitle))
        .map(({ file, fullTitle }) => `${fileOf(file)}: ${fullTitle}`),
    );
    const missing = tests.filter(({ file, title }) => !present.has(`${file}: ${title}`));
    assert.deepEqual(missing, []);
  });

  it('is read as it is written', () => {
    const [question] = questionsOf(
      '## One (2004)\n\n### 1.1 Why?\n\nSo.\n\n- `test/a.test.ts`: a › b\n',
    );
    assert.deepEqual(question, {
      discussion: 'One (2004)',
      title: '1.1 Why?',
      answer: 'So.',
      tests: [{ file: 'test/a.test.ts', title: 'a b' }],
    });
    assert.throws(() => testOf('- `test/a.test.ts` has it'), /not a test/);
  });
});

/** `test/…/x.test.ts` of the compiled file that mocha names. */
function fileOf(compiled: string): string {
  return compiled.slice(join(root, 'dist').length + 1).replace(/\.js$/, '.ts');
}

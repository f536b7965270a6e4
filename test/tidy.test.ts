// House style as a test: what neither the compiler, the linter nor the formatter can say.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const maxColumns = 100;
/** Of code: comments and blank lines do not count, and no concept is cut to meet it. */
const maxLines = 600;
const codeExtensions = new Set(['.ts', '.js', '.mjs', '.cjs', '.c', '.cc', '.h', '.sh', '.py']);

// Spelled in pieces so that this file passes its own test.
const unfinished = new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X'].join('|')})\\b`);
const machinePath = new RegExp(`(?<![\\w./-])/(?:${['work', 'farm', 'home', 'Users'].join('|')})/`);
const registryHost = /https?:\/\/[\w.-]*(?:registry|artifactory|nexus|verdaccio)[\w.-]*/;
const resolvedUrl = /"resolved":/;

interface SourceFile {
  readonly path: string;
  readonly text: string;
}

const ignored = readFileSync(join(root, '.gitignore'), 'utf8').split('\n').filter(Boolean);
const ignoredNames = new Set(['.git', ...ignored.map((line) => line.replace(/\/$/, ''))]);
const ignoredExtensions = new Set(
  ignored.filter((line) => line.startsWith('*.')).map((line) => line.slice(1)),
);

const pictures = new Set(['.webp']);

function* walk(dir: string): Generator<SourceFile> {
  for (const entry of readdirSync(join(root, dir), { withFileTypes: true })) {
    const path = dir ? `${dir}/${entry.name}` : entry.name;
    if (ignoredNames.has(entry.name) || ignoredNames.has(path)) continue;
    if (ignoredExtensions.has(extname(path)) || pictures.has(extname(path))) continue;
    if (entry.isDirectory()) yield* walk(path);
    else if (entry.isFile()) yield { path, text: readFileSync(join(root, path), 'utf8') };
  }
}

const files = [...walk('')];
const isCode = ({ path }: SourceFile): boolean =>
  codeExtensions.has(extname(path)) || path === '.ci/run';

/** `path:line` of every line the predicate is true for. */
function linesWhere(among: readonly SourceFile[], bad: (line: string) => boolean): string[] {
  return among.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, i) => (bad(line) ? [`${path}:${i + 1}`] : [])),
  );
}

const hashComments = new Set(['.sh', '.py']);

/** Lines that are neither blank nor nothing but comment. */
function linesOfCode({ path, text }: SourceFile): number {
  const hash = hashComments.has(extname(path)) || path === '.ci/run';
  const bare = hash
    ? text.replace(/^\s*#.*$/gm, '')
    : text.replace(/^\s*\/\*[^]*?\*\//gm, '').replace(/^\s*\/\/.*$/gm, '');
  return bare.split('\n').filter((line) => line.trim() !== '').length;
}

describe('tidy', () => {
  it('sees the tree', () => {
    assert.ok(files.some(({ path }) => path === 'test/tidy.test.ts'));
    assert.ok(!files.some(({ path }) => path.startsWith('node_modules/')));
  });

  it(`keeps code within ${maxColumns} columns`, () => {
    // An import of one name cannot be broken.
    const isUnbreakable = (line: string): boolean => /^(im|ex)port .*\{ [^,]+ \} from '/.test(line);
    const long = linesWhere(
      files.filter(isCode),
      (line) => [...line].length > maxColumns && !isUnbreakable(line),
    );
    assert.deepEqual(long, []);
  });

  it(`keeps code files within ${maxLines} lines of code`, () => {
    const long = files.filter((file) => isCode(file) && linesOfCode(file) > maxLines);
    assert.deepEqual(
      long.map(({ path }) => path),
      [],
    );
  });

  it('counts neither comments nor blank lines as code', () => {
    const count = (path: string, text: string): number => linesOfCode({ path, text });
    assert.equal(
      count('a.ts', '/**\n * Why.\n */\n\nconst a = 1; // so\n  // no\n/* x */ b();\n'),
      2,
    );
    assert.equal(count('a.h', '#include "x.h"\n/* a\n b */\n\nint c;\n'), 2);
    assert.equal(count('a.sh', '#!/bin/sh\n# why\n\necho "$#"\n'), 1);
  });

  it('leaves nothing unfinished', () => {
    const code = files.filter(({ path }) => path !== 'package-lock.json' && path !== 'LICENSE');
    assert.deepEqual(
      linesWhere(code, (line) => unfinished.test(line)),
      [],
    );
  });

  it('ends lines with LF and files with a newline, and has no file without a line', () => {
    const bad = files.filter(({ text }) => text.includes('\r') || !text.endsWith('\n'));
    assert.deepEqual(
      bad.map(({ path }) => path),
      [],
    );
  });

  it('names no path of a machine and no registry', () => {
    const local = (line: string): boolean => machinePath.test(line) || registryHost.test(line);
    assert.deepEqual(linesWhere(files, local), []);
    const lock = files.filter(({ path }) => path === 'package-lock.json');
    assert.equal(lock.length, 1);
    assert.deepEqual(
      linesWhere(lock, (line) => resolvedUrl.test(line)),
      [],
    );
  });

  it('has no default export', () => {
    const sources = files.filter(({ path }) => path.endsWith('.ts'));
    const bad = (line: string): boolean =>
      /^export\s+default\b/.test(line) || /\bas\s+default\b/.test(line);
    assert.deepEqual(linesWhere(sources, bad), []);
  });

  it('gives a reason with every lint exception', () => {
    const sources = files.filter(
      ({ path }) => path.endsWith('.ts') && path !== 'test/tidy.test.ts',
    );
    const bad = (line: string): boolean => /eslint-disable/.test(line) && !/ -- \S/.test(line);
    assert.deepEqual(linesWhere(sources, bad), []);
  });

  it('pins every package exactly', () => {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
      'dependencies' | 'devDependencies',
      Record<string, string>
    >;
    const all = { ...manifest.dependencies, ...manifest.devDependencies };
    const loose = Object.entries(all).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version));
    assert.deepEqual(loose, []);
  });
});

// The pages' links lead somewhere, paths in them exist, and every page can be reached.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { ApiSymbols } from './api-symbols.js';

const root = join(import.meta.dirname, '../../..');
const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'samples/README.md'],
  ...['docs', 'docs/guides'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
];
const texts = new Map(pages.map((page) => [page, readFileSync(join(root, page), 'utf8')]));

interface Link {
  readonly page: string;
  readonly target: string;
  readonly anchor: string;
}

/** Links inside the repository. */
function linksOf(page: string): Link[] {
  const text = texts.get(page) ?? '';
  return [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(
    ([, path = '', anchor = '']) => ({
      page,
      target: path === '' ? page : normalize(join(dirname(page), path)),
      anchor,
    }),
  );
}

/** Anchors of a page's headings, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const headings = text.split('\n').filter((line) => /^#+ /.test(line));
  return new Set(
    headings.map((line) =>
      line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Paths of the tree in `code`: those that begin with a folder of ours. */
function pathsOf(text: string): string[] {
  const prose = text.replaceAll(/```[^]*?```/g, '');
  const path = /`((?:core|plugins|providers|samples|test|bench|docs)\/[\w./-]+)`/g;
  return [...prose.matchAll(path)].map(([, name = '']) => name);
}

/** Files whose code stands beneath their name. */
function namedFilesOf(text: string): Set<string> {
  return new Set([...text.matchAll(/`([\w.-]+)`:\n\n```/g)].map(([, name = '']) => name));
}

describe('the pages', () => {
  it('link to files and headings that are there', () => {
    const links = pages.flatMap(linksOf);
    assert.ok(links.length > 30);
    const broken = links.filter(({ target, anchor }) => {
      if (!existsSync(join(root, target))) return true;
      return anchor !== '' && !anchorsOf(texts.get(target) ?? '').has(anchor);
    });
    assert.deepEqual(broken, []);
  });

  it('name files and folders that are there', () => {
    const named = pages.flatMap((page) =>
      pathsOf(texts.get(page) ?? '').map((path) => ({ page, path })),
    );
    assert.ok(named.length > 20);
    const missing = named.filter(
      ({ path }) => !existsSync(join(root, path)) && !existsSync(join(root, `${path}.ts`)),
    );
    assert.deepEqual(missing, []);
  });

  it('say which page has a file that their programs import', () => {
    const guides = pages.filter((page) => page.startsWith('docs/guides/'));
    const named = new Map(guides.map((page) => [page, namedFilesOf(texts.get(page) ?? '')]));
    const imported = guides.flatMap((page) =>
      [...(texts.get(page) ?? '').matchAll(/^import .* from '\.\/([\w.-]+)';$/gm)].map(
        ([, file = '']) => ({ page, file }),
      ),
    );
    assert.ok(imported.length > 10);
    const unsaid = imported.filter(({ page, file }) => {
      const isOwn = named.get(page)?.has(file) === true;
      const text = texts.get(page) ?? '';
      const link = text.split(`[${file}](`)[1]?.split(/[#)]/)[0];
      const isSaid =
        link !== undefined && named.get(normalize(join('docs/guides', link)))?.has(file) === true;
      return !isOwn && !isSaid;
    });
    assert.deepEqual(unsaid, []);
  });

  let api: ApiSymbols;
  before(() => {
    api = new ApiSymbols(['dist/core/spi/index.d.ts', 'dist/plugins/node/index.d.ts']);
  });

  it('name calls and properties that the API has', () => {
    const member = /`((?:ia|pz|lmr|rmr|srq|evd|cno|ep|psp|rsp|csp|cr|registry)\.[\w$]+)/g;
    const named = pages.flatMap((page) =>
      [...(texts.get(page) ?? '').matchAll(member)].map(([, code = '']) => code),
    );
    assert.ok(named.length > 50);
    const problems = [...new Set(named)]
      .map((code) => api.problemOf(code))
      .filter((problem) => /there is no|is not exported/.test(problem ?? ''));
    assert.deepEqual(problems, []);
  });

  it('name for what other APIs have what is there, with its parameters', () => {
    const text = texts.get('docs/guides/from-other-apis.md') ?? '';
    const rows = text.split('\n').filter((line) => line.startsWith('| `'));
    const shown = rows.flatMap((row) => {
      const [, here = ''] = row.split(' | ');
      return [...here.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
    });
    assert.ok(shown.length > 100);
    const codes = [...new Set(shown)].filter((code) => code.includes('.') || code.includes('('));
    assert.deepEqual(codes.map((code) => api.problemOf(code)).filter(Boolean), []);
  });

  it('are reached from the README', () => {
    const reached = new Set(['README.md']);
    for (const page of reached) {
      for (const { target } of linksOf(page)) if (texts.has(target)) reached.add(target);
    }
    assert.deepEqual([...reached].sort(), [...pages].sort());
  });
});

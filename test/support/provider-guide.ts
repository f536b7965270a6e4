/** docs/guides/write-a-provider*.md: the package that its pages make, in a folder. */
import assert from 'node:assert/strict';
import { guide, ProgramFolder } from './guide-page.js';

const PAGES = ['', '-2', '-3', '-4'];

export const providerGuide = PAGES.map((page) => guide(`write-a-provider${page}`)).join('\n');

/** The package as it is printed, or with one text in place of another. */
export function providerPackage(text = '', replacement = ''): ProgramFolder {
  const changed = providerGuide.replace(text, () => replacement);
  if (text !== '') assert.notEqual(changed, providerGuide, `the pages have no ${text}`);
  return new ProgramFolder().addAll(changed).withDapl();
}

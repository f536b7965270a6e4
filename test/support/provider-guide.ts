/** docs/guides/write-a-provider.md: the package that it makes, in a folder. */
import assert from 'node:assert/strict';
import { guide, ProgramFolder } from './guide-page.js';

export const providerGuide = guide('write-a-provider');

/** The package as it is printed, or with one text in place of another. */
export function providerPackage(text = '', replacement = ''): ProgramFolder {
  const changed = providerGuide.replace(text, () => replacement);
  if (text !== '') assert.notEqual(changed, providerGuide, `the page has no ${text}`);
  return new ProgramFolder().addAll(changed).withDapl();
}

/**
 * Programs of docs/guides: a block of JavaScript whose first line is a comment with the name of its
 * file. A block of text right behind it is what the program prints; without one it is a module that
 * the others import.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const guides = join(import.meta.dirname, '../../../docs/guides');

export interface GuideProgram {
  readonly file: string;
  readonly code: string;
  /** Undefined of a module. */
  readonly prints: string | undefined;
}

export function guideText(page: string): string {
  return readFileSync(join(guides, `${page}.md`), 'utf8');
}

/** Of the blocks of code, in the order of the page. */
export function languagesOf(markdown: string): readonly string[] {
  const blocks = markdown.matchAll(/^```(\w*)\n[^]*?^```$/gm);
  return [...blocks].map(([, language = '']) => language);
}

/** @throws Error for a program that does not say the name of its file */
export function programsOf(markdown: string): readonly GuideProgram[] {
  const blocks = markdown.matchAll(/^```js\n([^]*?)^```\n(?:\n```text\n([^]*?)^```$)?/gm);
  return [...blocks].map(([, code = '', prints]): GuideProgram => {
    const file = /^\/\/ ([\w-]+\.mjs)\n/.exec(code)?.[1];
    if (file === undefined) throw new Error(`a program does not say the name of its file: ${code}`);
    return { file, code, prints };
  });
}

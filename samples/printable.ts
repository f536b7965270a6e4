/** Makes text from another machine safe to print on a terminal. */

/**
 * Characters that a terminal obeys, or that change what the others look like: controls (C0, DEL,
 * C1), parts of lines and paragraphs, and the invisible ones that turn the direction of writing.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** The text on one line, with each of those as `\u{HEX}`. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, (found) => `\\u{${found.codePointAt(0)!.toString(16)}}`);
}

/** The same for a text of several lines, which they stay. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** Makes text from another machine safe to print on a terminal. */

/**
 * Characters that control a terminal, or change the look of others: controls (C0, DEL, C1), line
 * and paragraph separators, and invisible ones that change the direction of text.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** The text on one line, with each of those characters as `\u{HEX}`. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, (found) => `\\u{${found.codePointAt(0)!.toString(16)}}`);
}

/** Like `printable`, but keeps line breaks. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

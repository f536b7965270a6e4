/** Values and texts in messages: of bounded length, on one line, and never throwing. */

const MOST_OF_A_VALUE = 60;
const MOST_OF_A_MESSAGE = 2000;

/** Control and format characters, line separators, halves of surrogate pairs. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** A value for a message: a short description. */
export function show(value: unknown): string {
  if (typeof value === 'string') return oneLine(JSON.stringify(cut(value, MOST_OF_A_VALUE)));
  return oneLine(describe(value), MOST_OF_A_VALUE);
}

/**
 * A text whose parts may come from anywhere, such as a caller or a peer. Characters that a terminal
 * would act upon are escaped as in JavaScript, and a long text is cut.
 * @param most characters to keep
 */
export function oneLine(text: string, most = MOST_OF_A_MESSAGE): string {
  return cut(text, most).replace(UNPRINTABLE, escaped);
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

function describe(value: unknown): string {
  switch (typeof value) {
    case 'bigint':
      return `${value}n`;
    case 'function':
      return 'a function';
    case 'object':
      return value === null ? 'null' : describeObject(value);
    default:
      return String(value);
  }
}

/** Describes an object. Its class may throw when it is inspected. */
function describeObject(value: object): string {
  try {
    if (Array.isArray(value)) return `an array of ${value.length}`;
    const constructor: unknown = value.constructor;
    const name = typeof constructor === 'function' ? constructor.name : 'Object';
    if (name === 'Object') return 'an object';
    return `${/^[AEIO]/.test(String(name)) ? 'an' : 'a'} ${String(name)}`;
  } catch {
    return 'an object';
  }
}

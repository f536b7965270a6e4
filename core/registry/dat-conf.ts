/**
 * dat.conf: the static registry (dat.conf(5)). One adapter a line, with eight fields separated by
 * blanks. A field in double quotes may hold blanks, and there a backslash escapes the next
 * character. `#` where a field could begin starts a comment. A malformed line is reported and
 * skipped. Parses text into entries: files are not read here.
 */

import { DatError } from '../errors/index.js';
import { mustBe } from '../spi/checks/index.js';

/** A line of dat.conf. */
export interface DatConfEntry {
  /** Name for `openIa`; 1 to 255 characters. */
  readonly iaName: string;
  /** `u`: user level (uDAPL), `k`: kernel (kDAPL). */
  readonly api: 'u' | 'k';
  /** API version of the provider: 2 and 0 for DAT 2.0. */
  readonly versionMajor: number;
  readonly versionMinor: number;
  readonly isThreadSafe: boolean;
  /** Only `default` lines of the `u` API are loaded. */
  readonly isDefault: boolean;
  /** The library: here a module, such as `dapl/providers/softroce`. */
  readonly libPath: string;
  /** The provider's own id and version: `dapl.2.0`. */
  readonly providerId: string;
  readonly providerMajor: number;
  readonly providerMinor: number;
  /** Parameters for the provider. */
  readonly iaParams: string;
  readonly platformParams: string;
}

export interface DatConf {
  readonly entries: readonly DatConfEntry[];
  /** Errors of the lines that were skipped: file, line number, field and value. */
  readonly errors: readonly DatError[];
}

/** Longest ia_name in characters (DAT_NAME_MAX_LENGTH, which counts the terminating NUL). */
export const MAX_IA_NAME_LENGTH = 255;

const OPERATION = 'parseDatConf';
const MAX_UINT32 = 0xffffffff;
const FIELDS = [
  'ia_name',
  'api_version',
  'thread safety',
  'default',
  'lib_path',
  'provider_version',
  'ia_params',
  'platform_params',
];

/**
 * Reads the text of a dat.conf.
 * @param source names the text in errors
 * @throws DatError DAT_INVALID_PARAMETER when `text` is not a string; never for its content
 */
export function parseDatConf(text: string, source = 'dat.conf'): DatConf {
  if (typeof text !== 'string') throw new LineError('text', text, 'a string').toDatError(OPERATION);
  const entries: DatConfEntry[] = [];
  const errors: DatError[] = [];
  text.split(/\r\n|\n/).forEach((line, i) => {
    try {
      const fields = fieldsOf(line);
      if (fields.length > 0) entries.push(entryOf(fields));
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      errors.push(error.toDatError(`${source}:${i + 1}`));
    }
  });
  return { entries, errors };
}

/**
 * The text of entries; `parseDatConf` returns the same entries.
 * @throws DatError DAT_INVALID_PARAMETER for an entry that no line can hold
 */
export function formatDatConf(entries: readonly DatConfEntry[]): string {
  return entries.map((entry) => `${lineOf(entry)}\n`).join('');
}

/** The fields of a line; none for an empty one. */
function fieldsOf(line: string): string[] {
  const fields: string[] = [];
  let at = 0;
  while (at < line.length) {
    const char = line.charAt(at);
    if (isBlank(char)) at++;
    else if (char === '#') break;
    else if (char === '"') at = takeQuoted(line, at, fields);
    else at = takeWord(line, at, fields);
  }
  return fields;
}

/** @returns where the line continues */
function takeQuoted(line: string, start: number, fields: string[]): number {
  let field = '';
  for (let at = start + 1; at < line.length; at++) {
    const char = line.charAt(at);
    if (char === '"') {
      fields.push(field);
      return at + 1;
    }
    // A backslash at the very end has nothing to escape, and the quote is not closed either.
    field += char === '\\' ? line.charAt(++at) : char;
  }
  throw new LineError(nameOfField(fields.length), line.slice(start), 'closed by a double quote');
}

function takeWord(line: string, start: number, fields: string[]): number {
  let end = start;
  while (end < line.length && !isBlank(line.charAt(end))) end++;
  const word = line.slice(start, end);
  if (word.includes('"')) {
    throw new LineError(nameOfField(fields.length), word, 'quoted as a whole or not at all');
  }
  fields.push(word);
  return end;
}

function entryOf(fields: readonly string[]): DatConfEntry {
  if (fields.length !== FIELDS.length) {
    throw new LineError('the number of fields', fields.length, `${FIELDS.length}`);
  }
  const [name = '', api = '', safety = '', standard = '', lib = '', version = ''] = fields;
  const [iaParams = '', platformParams = ''] = fields.slice(6);
  return {
    iaName: checkName(name),
    ...apiVersionOf(api),
    isThreadSafe: choose('thread safety', safety, 'threadsafe', 'nonthreadsafe'),
    isDefault: choose('default', standard, 'default', 'nondefault'),
    libPath: checkFilled('lib_path', lib),
    ...providerVersionOf(version),
    iaParams,
    platformParams,
  };
}

function checkName(name: string): string {
  if (checkFilled('ia_name', name).length <= MAX_IA_NAME_LENGTH) return name;
  throw new LineError('ia_name', name, `at most ${MAX_IA_NAME_LENGTH} characters long`);
}

function checkFilled(field: string, value: string): string {
  if (value !== '') return value;
  throw new LineError(field, value, 'at least one character');
}

function choose(field: string, value: string, yes: string, no: string): boolean {
  if (value !== yes && value !== no) throw new LineError(field, value, `${yes} or ${no}`);
  return value === yes;
}

function apiVersionOf(text: string): Pick<DatConfEntry, 'api' | 'versionMajor' | 'versionMinor'> {
  const expected = 'u or k and a version, such as u2.0';
  const [, api, major, minor] = /^([uk])(\d+)\.(\d+)$/.exec(text) ?? [];
  if (api === undefined) throw new LineError('api_version', text, expected);
  return {
    api: api === 'u' ? 'u' : 'k',
    versionMajor: numberOf('api_version', text, major),
    versionMinor: numberOf('api_version', text, minor),
  };
}

function providerVersionOf(
  text: string,
): Pick<DatConfEntry, 'providerId' | 'providerMajor' | 'providerMinor'> {
  const [, id, major, minor] = /^([^.]+)\.(\d+)\.(\d+)$/.exec(text) ?? [];
  if (id === undefined) {
    throw new LineError('provider_version', text, 'an id and a version, such as dapl.2.0');
  }
  return {
    providerId: id,
    providerMajor: numberOf('provider_version', text, major),
    providerMinor: numberOf('provider_version', text, minor),
  };
}

function numberOf(field: string, text: string, digits: string | undefined): number {
  const value = Number(digits);
  if (value <= MAX_UINT32) return value;
  throw new LineError(field, text, `a version of numbers up to ${MAX_UINT32}`);
}

function lineOf(entry: DatConfEntry): string {
  checkTexts(entry);
  const { iaName, api, libPath, iaParams, platformParams } = entry;
  const fields = [
    iaName,
    `${api}${entry.versionMajor}.${entry.versionMinor}`,
    entry.isThreadSafe ? 'threadsafe' : 'nonthreadsafe',
    entry.isDefault ? 'default' : 'nondefault',
    libPath,
    `${entry.providerId}.${entry.providerMajor}.${entry.providerMinor}`,
  ].map(quoteWhereNeeded);
  const line = [...fields, quote(iaParams), quote(platformParams)].join(' ');
  const problem = problemOfLine(line);
  if (problem !== undefined) throw problem.toDatError('formatDatConf');
  return line;
}

function checkTexts(entry: DatConfEntry): void {
  for (const name of ['iaName', 'libPath', 'providerId', 'iaParams', 'platformParams'] as const) {
    const value: unknown = (entry as DatConfEntry | undefined)?.[name];
    if (typeof value !== 'string') {
      throw new LineError(name, value, 'a string').toDatError('formatDatConf');
    }
  }
}

/** The error that parsing this line would report. */
function problemOfLine(line: string): LineError | undefined {
  if (line.includes('\n')) return new LineError('a field', line, 'on one line');
  try {
    entryOf(fieldsOf(line));
    return undefined;
  } catch (error) {
    if (error instanceof LineError) return error;
    throw error;
  }
}

function quoteWhereNeeded(field: string): string {
  return /^#|["\s]|^$/.test(field) ? quote(field) : field;
}

function quote(field: string): string {
  return `"${field.replace(/["\\]/g, '\\$&')}"`;
}

function nameOfField(index: number): string {
  return FIELDS[index] ?? 'what follows the last field';
}

function isBlank(char: string): boolean {
  return /\s/.test(char);
}

/** One error of one line. */
class LineError extends Error {
  constructor(
    private readonly field: string,
    private readonly value: unknown,
    private readonly expected: string,
  ) {
    super(field);
  }

  toDatError(operation: string): DatError {
    return new DatError('DAT_INVALID_PARAMETER', {
      subtype: 'DAT_INVALID_ARG1',
      operation,
      message: mustBe(this.field, this.value, this.expected),
      hint: `write a line as ${FIELDS.join(' ')}`,
      value: this.value,
    });
  }
}

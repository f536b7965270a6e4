import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { DatError } from '../../../core/errors/index.js';
import { type DatConfEntry, formatDatConf, parseDatConf } from '../../../core/registry/index.js';

const LINE = 'ib0 u2.0 nonthreadsafe default dapl/providers/verbs dapl.2.0 "mlx5_0 1" ""';
const ENTRY: DatConfEntry = {
  iaName: 'ib0',
  api: 'u',
  versionMajor: 2,
  versionMinor: 0,
  isThreadSafe: false,
  isDefault: true,
  libPath: 'dapl/providers/verbs',
  providerId: 'dapl',
  providerMajor: 2,
  providerMinor: 0,
  iaParams: 'mlx5_0 1',
  platformParams: '',
};

/** The error of the only line. */
function problem(line: string): DatError {
  const { entries, errors } = parseDatConf(line);
  assert.deepEqual(entries, []);
  const [error, ...more] = errors;
  assert.ok(error !== undefined && more.length === 0);
  return error;
}

describe('dat.conf', () => {
  it('has eight fields a line', () => {
    assert.deepEqual(parseDatConf(LINE), { entries: [ENTRY], errors: [] });
  });

  it('skips comments and empty lines, and takes any blanks and line ends', () => {
    const line = LINE.replaceAll(' u', '\t  u');
    const text = `# a comment, with "a quote\r\n\n   \t \n\t${line} # tail\r\n`;
    assert.deepEqual(parseDatConf(text), { entries: [ENTRY], errors: [] });
    assert.deepEqual(parseDatConf(`${LINE}#tail`).entries, [ENTRY]);
  });

  it('knows a comment only where a field could begin, or after a quoted one', () => {
    const [entry] = parseDatConf(LINE.replace('ib0', 'ib#0').replace('1"', '# 1"')).entries;
    assert.deepEqual(entry, { ...ENTRY, iaName: 'ib#0', iaParams: 'mlx5_0 # 1' });
  });

  it('takes what a backslash precedes as it is, inside of quotes', () => {
    const line = LINE.replace('ib0', String.raw`"my \"ib\" \\0"`).replace(
      'dapl/',
      String.raw`C:\x\ `,
    );
    assert.match(problem(line).message, /the number of fields is 9/);
    const [entry] = parseDatConf(line.replace(String.raw`\ `, String.raw`\y`)).entries;
    assert.equal(entry?.iaName, String.raw`my "ib" \0`);
    assert.equal(entry.libPath, String.raw`C:\x\yproviders/verbs`);
  });

  it('skips a bad line, says what is wrong with which, and goes on', () => {
    const { entries, errors } = parseDatConf(`${LINE}\nbad line\n# ok\n${LINE}\n"open\n`, '/etc/x');
    assert.deepEqual(entries, [ENTRY, ENTRY]);
    assert.deepEqual(
      errors.map(({ operation }) => operation),
      ['/etc/x:2', '/etc/x:5'],
    );
  });

  const bad: readonly (readonly [string, string, RegExp])[] = [
    ['ib0', '""', /ia_name is ""; it must be at least one/],
    ['ib0', 'x'.repeat(256), /ia_name is "x+…"; it must be at most 255/],
    ['u2.0', '2.0', /api_version is "2\.0"; it must be u or k/],
    ['u2.0', 'u2', /api_version is "u2"/],
    ['u2.0', 'u2.99999999999', /api_version .* numbers up to 4294967295/],
    ['nonthreadsafe', 'threadSafe', /thread safety is "threadSafe"; it must be threadsafe or/],
    ['default', 'yes', /default is "yes"; it must be default or nondefault/],
    ['dapl/providers/verbs', '""', /lib_path is ""/],
    ['dapl.2.0', 'dapl.2', /provider_version is "dapl\.2"; .* such as dapl\.2\.0/],
    ['dapl.2.0', '.2.0', /provider_version is/],
    ['"mlx5_0 1"', '', /the number of fields is 7; it must be 8/],
    ['""', '"" more', /the number of fields is 9; it must be 8/],
    ['""', '"', /platform_params is "\\""; it must be closed/],
    ['"mlx5_0 1"', 'mlx"5"', /ia_params is "mlx\\"5\\""; it must be quoted as a whole/],
  ];
  for (const [good, wrong, text] of bad) {
    it(`refuses ${wrong.slice(0, 20) || 'nothing'} for ${good}`, () => {
      const error = problem(LINE.replace(good, wrong));
      assert.equal(error.code, 'DAT_INVALID_PARAMETER');
      assert.match(error.message, text);
    });
  }

  it('tells kernel lines and thread safety apart', () => {
    const line = LINE.replace('u2.0', 'k1.2').replace('nonthread', 'thread');
    const [entry] = parseDatConf(line.replace(' default', ' nondefault')).entries;
    const { api, versionMajor, versionMinor, isThreadSafe, isDefault } = entry ?? ENTRY;
    assert.deepEqual([api, versionMajor, versionMinor], ['k', 1, 2]);
    assert.deepEqual([isThreadSafe, isDefault], [true, false]);
  });

  const name = fc.string({ minLength: 1, maxLength: 20, unit: 'binary' });
  const oneLine = (text: string): boolean => !text.includes('\n');
  const version = fc.nat(0xffffffff);
  const anyEntry: fc.Arbitrary<DatConfEntry> = fc.record(
    {
      iaName: name.filter(oneLine),
      api: fc.constantFrom('u', 'k'),
      versionMajor: version,
      versionMinor: version,
      isThreadSafe: fc.boolean(),
      isDefault: fc.boolean(),
      libPath: name.filter(oneLine),
      providerId: name.filter((id) => oneLine(id) && !id.includes('.')),
      providerMajor: version,
      providerMinor: version,
      iaParams: fc.string({ unit: 'binary' }).filter(oneLine),
      platformParams: fc.string({ unit: 'binary' }).filter(oneLine),
    },
    { noNullPrototype: true },
  );

  it('gives back the entries that it was made of', () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 5 }), (entries) => {
        assert.deepEqual(parseDatConf(formatDatConf(entries)), { entries, errors: [] });
      }),
    );
  });

  it('makes no text of an entry that no line can hold', () => {
    for (const wrong of [
      { iaName: '' },
      { iaName: 'a\nb' },
      { libPath: '' },
      { providerId: 'a.b' },
      { versionMajor: -1 },
      { versionMinor: 0.5 },
      { iaParams: undefined },
    ]) {
      const entry = { ...ENTRY, ...wrong } as DatConfEntry;
      assert.throws(
        () => formatDatConf([entry]),
        (error) => DatError.isDatError(error) && error.code === 'DAT_INVALID_PARAMETER',
      );
    }
    assert.throws(() => formatDatConf([undefined as never]), DatError);
  });

  it('reads the example of docs/registry.md', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/registry.md'), 'utf8');
    const [, example = ''] = /```\n(# ia_name[^`]*)```/.exec(page) ?? [];
    const { entries, errors } = parseDatConf(example);
    assert.deepEqual(errors, []);
    const names = entries.map(({ iaName }) => iaName);
    assert.deepEqual(names, ['softroce0', 'softroce1', 'mock0', 'verbs0', 'ofa-v2-rxe', 'acme0']);
  });

  it('never throws for what a text says: a line is an entry, empty, or one error', () => {
    const words = fc.constantFrom(
      ...LINE.split(' '),
      '"',
      '\\',
      '#',
      '\n',
      '\r',
      '\0',
      'u',
      '.',
      '""',
    );
    const soup = fc.array(fc.oneof(words, fc.string({ unit: 'binary' })), { maxLength: 40 });
    fc.assert(
      fc.property(soup, fc.constantFrom('', ' '), (pieces, glue) => {
        const text = pieces.join(glue);
        const { entries, errors } = parseDatConf(text);
        assert.ok(entries.length + errors.length <= text.split('\n').length);
        for (const error of errors) {
          assert.ok(DatError.isDatError(error));
          assert.match(error.operation, /^dat\.conf:\d+$/);
        }
        assert.deepEqual(parseDatConf(formatDatConf(entries)).entries, entries);
      }),
      { numRuns: 500 },
    );
    assert.throws(() => parseDatConf(7 as never), /text is 7; it must be a string/);
  });
});

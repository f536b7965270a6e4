import assert from 'node:assert/strict';
import { printable, printableLines } from '../../../samples/printable.js';

describe('samples: text of another machine', () => {
  it('stays as it is where a terminal only shows it', () => {
    for (const text of ['', 'Größe mit  Leerzeichen ✓.bin', '🙂 a\\b "c"', '文件']) {
      assert.equal(printable(text), text);
    }
  });

  const obeyed: readonly (readonly [what: string, text: string, shown: string])[] = [
    ['a colour', '\x1b[31mred', '\\u{1b}[31mred'],
    ['a line that is written over', 'safe\rrm', 'safe\\u{d}rm'],
    ['another line', 'one\ntwo', 'one\\u{a}two'],
    ['C1 and DEL', '\x9b2J\x7f', '\\u{9b}2J\\u{7f}'],
    ['the direction of writing', 'gpj\u202Eexe', 'gpj\\u{202e}exe'],
    ['a line separator', 'a\u2028b', 'a\\u{2028}b'],
    ['half a character', 'a\ud800', 'a\\u{d800}'],
    ['a tag beyond 16 bits', 'a\u{e0041}', 'a\\u{e0041}'],
  ];
  for (const [what, text, shown] of obeyed) {
    it(`is escaped: ${what}`, () => assert.equal(printable(text), shown));
  }

  it('keeps its lines where it may have several', () => {
    assert.equal(printableLines('a\n\x1bb\n'), 'a\n\\u{1b}b\n');
  });
});

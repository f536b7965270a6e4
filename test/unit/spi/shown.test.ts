import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { type Facts, hex, showAs, Symbolic } from '../../../core/spi/checks/index.js';

class Thing {
  readonly id = 7;
  constructor(readonly shown: Facts) {}
  static {
    showAs(this, 'Thing', ({ id, shown }) => ({ id, ...shown }));
  }
}

describe('showAs', () => {
  it('writes each kind of fact', () => {
    const facts: readonly (readonly [unknown, string, unknown])[] = [
      ['it is', `: "it is"`.replaceAll('"', "'"), 'it is'],
      [5, ': 5', 5],
      [2n ** 64n, ': 18446744073709551616n', '18446744073709551616'],
      [true, '', true],
      [hex(255), ': 0xff', '0xff'],
      [new Symbolic('LEFT|RIGHT'), ': LEFT|RIGHT', 'LEFT|RIGHT'],
      [new Uint8Array(3), ': 3 bytes', '3 bytes'],
      [new Thing({}), ': Thing 7', 'Thing 7'],
      [new Error('lost'), ": 'Error: lost'", 'Error: lost'],
      [{ a: 1 }, ': { a: 1 }', { a: 1 }],
      ['x'.repeat(300), `: '${'x'.repeat(200)}'... 100 more characters`, 'x'.repeat(300)],
    ];
    for (const [value, text, json] of facts) {
      const thing = new Thing({ value });
      const line = inspect(thing);
      assert.ok(line.startsWith(`Thing { id: 7, value${text.slice(0, 150)}`), line);
      assert.ok(line.length < 260, line);
      assert.equal(String(thing as unknown), line);
      assert.deepEqual(JSON.parse(JSON.stringify(thing)), { kind: 'Thing', id: 7, value: json });
    }
    assert.equal(inspect(new Thing({ no: false, none: undefined })), 'Thing { id: 7 }');
  });

  it('never throws, and stays on its line', () => {
    const bad = {
      get [inspect.custom](): never {
        throw new Error('no');
      },
    };
    assert.equal(inspect(new Thing({ bad })), 'Thing { id: 7, bad: an object }');
    const long = { [inspect.custom]: (): string => `a\n   b${'c'.repeat(1000)}` };
    const line = inspect(new Thing({ long }));
    assert.match(line, /^Thing \{ id: 7, long: a b[c]+… \}$/);
    assert.ok(line.length < 260);
    assert.equal(String(Thing.prototype as unknown), 'Thing {}');
    assert.equal(JSON.stringify(Thing.prototype), '{"kind":"Thing"}');
    assert.deepEqual(Object.keys(Thing.prototype), []);
  });
});

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { runInNewContext, runInThisContext } from 'node:vm';
import { AREAS } from './areas.js';
import { rowNames } from './rows.js';
import { Instrumented } from './operators.js';
import { makePackage, sourcesOf } from './program.js';

const DIST = join(import.meta.dirname, '../..');
const JUDGED = join(DIST, '../test/mutation/survivors.json');

/** What a program answers, with one mutant or none, and which mutants it has come by. */
function answer(source: string, active: number): { value: unknown; hits: Set<number> } {
  const { text } = new Instrumented('x.js', source, 0);
  const hits = new Set<number>();
  Object.assign(globalThis, { __mutation: { active, hits } });
  const value: unknown = runInThisContext(`(() => { ${text}\nreturn f(); })()`);
  return { value, hits };
}

/** What each mutant of a function body makes of it, by its name. */
function answers(body: string): Record<string, unknown> {
  const source = `function f() { ${body} }`;
  const { mutants } = new Instrumented('x.js', source, 0);
  return Object.fromEntries(mutants.map(({ id, name }) => [name, answer(source, id).value]));
}

describe('mutants of a program', () => {
  it('are each small change of it, one at a time', () => {
    assert.deepEqual(answers('let a = 1; if (a < 1) a = 2; else a = 3; return a;'), {
      'f: a < 1 ⇒ true': 2,
      'f: a < 1 ⇒ false': 3,
      'f: a < 1 ⇒ <=': 2,
      'f: a = 2; ⇒ nothing': 3,
      'f: a = 3; ⇒ nothing': 1,
    });
    assert.deepEqual(answers('const a = true, b = 7; return a && b > 8;'), {
      'f.a: true ⇒ false': false,
      'f: a && b > 8 ⇒ without the right side': true,
      'f: a && b > 8 ⇒ without the left side': false,
      'f: b > 8 ⇒ >=': false,
    });
    assert.deepEqual(answers('return [Math.min(1, 2), 3 - 1, 1 === 1 ? "yes" : "no"].join();'), {
      'f: Math.min(1, 2) ⇒ max': '2,2,yes',
      'f: 3 - 1 ⇒ +': '1,4,yes',
      'f: 1 === 1 ⇒ true': '1,2,yes',
      'f: 1 === 1 ⇒ false': '1,2,no',
    });
  });

  it('leave the program as it was while none of them holds, and count who comes by', () => {
    const source = 'function f() { let a = 1; if (a > 1) { a = 5; } else a += 2; return a; }';
    const { value, hits } = answer(source, -1);
    assert.equal(value, 3);
    const { mutants } = new Instrumented('x.js', source, 0);
    const missed = mutants.filter(({ id }) => !hits.has(id)).map(({ name }) => name);
    assert.deepEqual(missed, ['f: a = 5; ⇒ nothing']);
    // A program that a test starts is told of none.
    const { text } = new Instrumented('x.js', source, 0);
    assert.equal(runInNewContext(`(() => { ${text}\nreturn f(); })()`), 3);
  });

  it('spare what is told to people, and a constructor’s parameters', () => {
    const spared = [
      'throw new Error(1 < 2 ? "a" : "b");',
      'this.logger.debug(1 < 2);',
      'assert(1 < 2);',
      'return `${1 < 2}`;',
    ];
    for (const body of spared) {
      assert.deepEqual(new Instrumented('x.js', `function f() { ${body} }`, 0).mutants, []);
    }
    const kept = new Instrumented(
      'x.js',
      'class A { constructor(a) { this.a = a; this.b = 1; } }',
      0,
    );
    assert.deepEqual(
      kept.mutants.map(({ name }) => name),
      ['A.constructor: this.b = 1; ⇒ nothing'],
    );
  });
});

describe('areas of mutants', () => {
  it('have no file of a folder that is an area of its own', () => {
    const [whole, part] = [AREAS['core/flow']!, AREAS['core/flow/channel']!];
    const files = sourcesOf(DIST, whole);
    assert.ok(files.includes('core/flow/connection.js'));
    const parts = sourcesOf(DIST, part);
    assert.ok(parts.includes('core/flow/channel/sender.js'));
    assert.deepEqual(
      files.filter((file) => parts.includes(file)),
      [],
    );
  });

  it('are reached by the name of the package, and find the documents', () => {
    const copy = mkdtempSync(join(DIST, 'mutants-'));
    try {
      const easy = join(copy, 'dist/plugins/easy/index.js');
      mkdirSync(dirname(easy), { recursive: true });
      writeFileSync(easy, '');
      makePackage(copy);
      const from = createRequire(join(copy, 'dist/test/some.js'));
      assert.equal(from.resolve('dapl/easy'), easy);
      assert.equal(basename(from.resolve('../../docs/evd.md')), 'evd.md');
    } finally {
      rmSync(copy, { recursive: true });
    }
  });
});

describe('survivors that have been judged', () => {
  it('are mutants of the program as it is, each with one of three verdicts', () => {
    const judged = JSON.parse(readFileSync(JUDGED, 'utf8')) as Record<
      string,
      Record<string, string>
    >;
    const names = new Map([['plugins/cm', new Set(rowNames())]]);
    for (const area of Object.values(AREAS)) {
      for (const file of sourcesOf(DIST, area)) {
        const { mutants } = new Instrumented(file, readFileSync(join(DIST, file), 'utf8'), 0);
        names.set(file.replace(/\.js$/, '.ts'), new Set(mutants.map(({ name }) => name)));
      }
    }
    for (const [file, verdicts] of Object.entries(judged)) {
      for (const [name, verdict] of Object.entries(verdicts)) {
        assert.ok(names.get(file)?.has(name), `${file} has no mutant "${name}" any more`);
        assert.match(verdict, /^(?:equivalent: .|accepted: .|open$)/, `${file}: ${name}`);
      }
    }
  });
});

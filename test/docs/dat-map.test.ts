// docs/dat-map.md has a row for each name of DAT, and what its rows name exists.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as dapl from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { DAT_SUBTYPE_NAMES, DAT_TYPE_NAMES, DAT_TYPE_VALUES } from '../data/dat-codes.js';
import { DAT_NAMES } from '../data/dat-names.js';
import { ApiSymbols, stepsOf } from './api-symbols.js';

interface Row {
  readonly section: string;
  readonly name: string;
  readonly ours: string;
  readonly difference: string;
}

const NOT_THERE = 'not there';
const text = readFileSync(join(import.meta.dirname, '../../../docs/dat-map.md'), 'utf8');
const rows = rowsOf(text);

const names: Readonly<Record<string, readonly string[]>> = {
  ...DAT_NAMES,
  'Return types': [...DAT_TYPE_NAMES, ...Object.keys(DAT_TYPE_VALUES)],
  'Return subtypes': DAT_SUBTYPE_NAMES,
};

function rowsOf(markdown: string): Row[] {
  let section = '';
  return markdown.split('\n').flatMap((line): Row[] => {
    if (line.startsWith('## ')) section = line.slice(3);
    const cells = /^\| `([^`]+)` \| (.*?) \| (.*) \|$/.exec(line);
    if (cells === null) return [];
    const [, name = '', ours = '', difference = ''] = cells;
    return [{ section, name, ours, difference }];
  });
}

/** Code in a cell. */
function spans(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
}

describe('docs/dat-map.md', () => {
  for (const [section, list] of Object.entries(names)) {
    it(`has one row for each of: ${section}`, () => {
      const present = rows.filter((row) => row.section === section).map(({ name }) => name);
      assert.deepEqual([...present].sort(), [...list].sort());
    });
  }

  it('has no section of its own making', () => {
    const sections = [...new Set(rows.map(({ section }) => section))];
    assert.deepEqual(sections.sort(), Object.keys(names).sort());
    assert.ok(rows.length > 600);
  });

  it('says of every name how it differs, and why, or why it is not there', () => {
    const empty = rows.filter(({ difference }) => difference.length < 8);
    assert.deepEqual(empty, []);
    const unnamed = rows.filter(({ ours }) => ours !== NOT_THERE && spans(ours).length === 0);
    assert.deepEqual(unnamed, []);
  });

  describe('names', () => {
    let api: ApiSymbols;
    before(() => {
      api = new ApiSymbols([
        'dist/core/spi/index.d.ts',
        'dist/plugins/node/index.d.ts',
        'dist/samples/collectives/collectives.d.ts',
        'dist/samples/collectives/group.d.ts',
      ]);
    });

    it('what exists, with the parameters that it has', () => {
      const shown = new Set(rows.flatMap(({ ours }) => spans(ours)));
      const problems = [...shown].map((code) => api.problemOf(code)).filter(Boolean);
      assert.deepEqual(problems, []);
    });

    it('what exists, also in its explanations', () => {
      const known = /^(?:ia|pz|lmr|rmr|srq|evd|cno|ep|udEp|psp|rsp|csp|cr|registry)\.\w/;
      const shown = new Set(rows.flatMap(({ difference }) => spans(difference)));
      const calls = [...shown].filter((code) => known.test(code));
      assert.ok(calls.length > 20);
      const problems = calls.map((code) => api.problemOf(code)).filter(Boolean);
      assert.deepEqual(problems, []);
    });

    it('what the compiler would find missing', () => {
      assert.match(api.problemOf('ia.createNothing()') ?? '', /there is no createNothing/);
      assert.match(api.problemOf('ep.postSend(cookie)') ?? '', /takes \(segments, cookie, flags\)/);
      assert.match(api.problemOf('Nothing.x') ?? '', /Nothing is not exported/);
      assert.match(api.problemOf('ia.address()') ?? '', /it is no method/);
      assert.equal(api.problemOf('ia.query().ia.maxEps'), undefined);
    });
  });

  it('names values that are there when the program runs', () => {
    const live = dapl as Readonly<Record<string, unknown>>;
    const problems = rows
      .flatMap(({ ours }) => spans(ours))
      .filter((code) => {
        const [first, ...rest] = stepsOf(code) ?? [];
        if (first === undefined || !(first.name in live) || first.name === 'DatError') return false;
        let value: unknown = live[first.name];
        if (typeof value === 'function') return false;
        for (const { name } of rest) {
          if (typeof value !== 'object' || value === null || !(name in value)) return true;
          value = (value as Readonly<Record<string, unknown>>)[name];
        }
        return value === undefined;
      });
    assert.deepEqual(problems, []);
  });

  it('names attributes that a query answers', async () => {
    const fabric = new Fabric({ autoRun: true });
    const ia = await dapl.openIa(mock({ fabric, address: '10.0.0.1' }));
    const answer = ia.query();
    const shown = rows
      .flatMap(({ ours }) => spans(ours))
      .filter((code) => code.startsWith('ia.query().'));
    assert.ok(shown.length > 80);
    const missing = shown.filter((code) => {
      const path = code.slice('ia.query().'.length).split('.');
      const value = path.reduce<unknown>(
        (object, name) => (object as Readonly<Record<string, unknown>> | undefined)?.[name],
        answer,
      );
      return value === undefined;
    });
    assert.deepEqual(missing, []);
    await ia.close();
  });
});

// Generated pages say what the code says.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EP_STATES } from '../../core/dat/endpoint/states.js';
import { ACTIVE_TABLE, PASSIVE_TABLE } from '../../plugins/cm/connection/states.js';
import { ASKED_TABLE, ASKING_TABLE } from '../../plugins/cm/sidr/states.js';
import { table } from './markdown.js';
import { GENERATED_PAGES } from './pages.js';

type Table = Readonly<Record<string, Readonly<Record<string, { readonly next: string }>>>>;

const docs = join(import.meta.dirname, '../../../docs');

describe('generated pages', () => {
  for (const [name, make] of Object.entries(GENERATED_PAGES)) {
    it(`docs/${name} is what the code says: if not, run npm run docs`, () => {
      assert.equal(readFileSync(join(docs, name), 'utf8'), make());
    });
  }

  it('shows every state of an endpoint with its subtype', () => {
    const text = GENERATED_PAGES['states.md']?.() ?? '';
    for (const [state, { subtype }] of Object.entries(EP_STATES)) {
      assert.ok(text.includes(`\`${state}\``) && text.includes(`\`${subtype}\``), state);
    }
    assert.match(text, /CONNECTED --> DISCONNECT_PENDING: disconnecting/);
  });

  it('shows every row of the CM, and an arrow for all that do something', () => {
    const text = GENERATED_PAGES['cm-states.md']?.() ?? '';
    const tables: readonly Table[] = [ACTIVE_TABLE, PASSIVE_TABLE, ASKING_TABLE, ASKED_TABLE];
    for (const machine of tables) {
      for (const [state, inputs] of Object.entries(machine)) {
        for (const [input, { next }] of Object.entries(inputs)) {
          const cells = [state, input, next].map((cell) => `\`${cell}\` *`).join('\\| ');
          assert.match(text, new RegExp(`\\| ${cells}\\|`), `${state} ${input}`);
        }
      }
    }
    assert.match(text, /ESTABLISHED --> DREQ_QUEUED: disconnect, stale/);
  });

  it('pads tables', () => {
    assert.equal(table(['a', 'bc'], [['def', 'g']]), '| a   | bc  |\n| --- | --- |\n| def | g   |');
  });
});

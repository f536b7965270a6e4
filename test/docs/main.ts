/** `npm run docs`: writes the generated pages. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GENERATED_PAGES } from './pages.js';

const docs = join(import.meta.dirname, '../../../docs');

for (const [name, make] of Object.entries(GENERATED_PAGES)) {
  writeFileSync(join(docs, name), make());
  console.log(`docs/${name}`);
}

// The reference of the public entries, in build/reference (npm run reference).

import { readFileSync } from 'node:fs';
import { Converter } from 'typedoc';

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** The names that programs import, by their files. */
const names = new Map(
  Object.entries(exports)
    .filter(([, entry]) => entry.types !== undefined)
    .map(([name, { types }]) => [
      types.replace('./dist/', '').replace('.d.ts', ''),
      `dapl${name.slice(1)}`,
    ]),
);

function nameModules(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children) {
      module.name = names.get(`${module.name}/index`) ?? names.get(module.name) ?? module.name;
    }
  });
}

/** @type {import('typedoc').TypeDocOptions} */
export default {
  name: 'dapl',
  entryPoints: [...names.keys()].map((file) => `../${file}.ts`),
  tsconfig: '../tsconfig.build.json',
  out: '../build/reference',
  plugin: [nameModules],
  excludePrivate: true,
  excludeInternal: true,
  excludeExternals: true,
  includeVersion: true,
  disableSources: true,
  readme: '../docs/versions.md',
  // Types that an entry uses and does not export are shown where they are used.
  treatWarningsAsErrors: true,
  validation: { notExported: false, invalidLink: true, rewrittenLink: true },
};
